// `verify` against real Envoys: those that do what the configuration says, and others that do not, each in its own way.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import type { Document } from 'yaml';
import { runCommand } from '../../lab/command.ts';
import { writeFixture } from '../../lab/config-file.ts';
import { allPages } from '../../lab/document.ts';
import { envoyVersions, type RunningEnvoy, startRenderedEnvoy } from '../../lab/envoy.ts';
import { connectionManagerPath, httpFilterPath } from '../../lab/envoy-bootstrap.ts';
import { freePorts } from '../../lab/free-ports.ts';
import { configuration, useLab } from './lab.ts';

type Edit = (bootstrap: Document) => void;

const checkFilter = 'envoy.filters.http.ext_authz';
const page = allPages().find(({ path }) => path === 'docs/verify.md')?.text;
const account = { headers: ['x-account-id'], query: ['account_id'] };
const settings = {
  public: [{ path: '/healthz' }, { path: '/hooks', methods: ['POST'] }, { path: '/static/*' }],
  account: { ...account, hosts: ['127.0.0.1', 'api.test', ':account_id.api.test'] },
};

/** A filter before all others that replaces a header, as a proxy before Envoy may do. `value` is an expression of Lua. */
function replaceHeader(name: string, value: string): Edit {
  const code = `function envoy_on_request(handle)
    handle:headers():replace("${name}", ${value})
  end`;
  const filter = {
    name: 'rewrite',
    typed_config: {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua',
      default_source_code: { inline_string: code },
    },
  };
  return bootstrap => {
    const { items } = bootstrap.getIn([...connectionManagerPath(bootstrap), 'http_filters']) as { items: unknown[] };
    items.unshift(bootstrap.createNode(filter));
  };
}

function setRoutes(change: (routes: readonly Record<string, unknown>[]) => readonly object[]): Edit {
  return bootstrap => {
    const hosts = [...connectionManagerPath(bootstrap), 'route_config', 'virtual_hosts'];
    const { virtual_hosts: found } = (bootstrap.getIn(hosts.slice(0, -1)) as { toJSON(): unknown }).toJSON() as {
      virtual_hosts: { routes?: readonly Record<string, unknown>[] }[];
    };
    for (const [i, { routes }] of found.entries())
      if (routes !== undefined) bootstrap.setIn([...hosts, i, 'routes'], change(routes));
  };
}

/** Gives the route of the public subtree other members of its `route`. */
function rewriteStatic(route: object): Edit {
  return setRoutes(routes =>
    routes.map(each =>
      JSON.stringify(each.match).includes('/static') && each.route
        ? { ...each, route: { ...each.route, ...route } }
        : each,
    ),
  );
}

/** To Envoy's own admin interface. */
function addAdmin(match: object, route: object): Edit {
  return bootstrap => {
    const { admin } = bootstrap.toJS() as { admin: { address: unknown } };
    const endpoints = [{ lb_endpoints: [{ endpoint: { address: admin.address } }] }];
    bootstrap.addIn(['static_resources', 'clusters'], {
      name: 'own-admin',
      load_assignment: { cluster_name: 'own-admin', endpoints },
    });
    const off = {
      '@type': 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute',
      disabled: true,
    };
    const noGuard = { '@type': 'type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBACPerRoute' };
    const open = {
      match,
      route: { cluster: 'own-admin', ...route },
      typed_per_filter_config: { [checkFilter]: off, 'envoy.filters.http.rbac': noGuard },
    };
    setRoutes(routes => [open, ...routes])(bootstrap);
  };
}

const withoutCheck: Edit = bootstrap => {
  for (const name of [checkFilter, 'envoy.filters.http.rbac'])
    bootstrap.deleteIn(httpFilterPath(bootstrap, name).slice(0, -1));
  setRoutes(() => [{ match: { path_separated_prefix: '/api/subscriptions' }, route: { cluster: 'upstream' } }])(
    bootstrap,
  );
};

const failOpen: Edit = bootstrap => {
  bootstrap.setIn([...httpFilterPath(bootstrap, checkFilter), 'failure_mode_allow'], true);
  bootstrap.deleteIn(httpFilterPath(bootstrap, 'envoy.filters.http.rbac').slice(0, -1));
};

const toOwnPath: Edit = bootstrap => {
  setRoutes(() => [{ match: { prefix: '/' }, route: { cluster: 'upstream' } }])(bootstrap);
  replaceHeader(':path', '"/internal" .. handle:headers():get(":path")')(bootstrap);
};

const forbidden: Edit = bootstrap =>
  bootstrap.setIn([...httpFilterPath(bootstrap, checkFilter), 'status_on_error', 'code'], 'Forbidden');

describe('verify and a running gateway', () => {
  const suite = useLab(settings);
  let api: Server;
  let seen: string[] = [];
  let envoy: RunningEnvoy | undefined;

  before(() => {
    // Serves the protected API beside public files, and asks for no token itself.
    api = createServer(({ url = '' }, response) => {
      seen.push(url);
      const isApi = url.startsWith('/api/subscriptions');
      response.writeHead(isApi ? 200 : 404, { 'content-type': isApi ? 'application/json' : 'text/html' }).end('{}');
    }).listen(0, '127.0.0.1');
  });
  after(() => api.close());
  beforeEach(() => {
    seen = [];
  });
  afterEach(async () => {
    await envoy?.stop();
    envoy = undefined;
  });

  const apiPort = (): number => (api.address() as AddressInfo).port;

  /** `rendered` replaces members of the configuration from which Envoy is rendered, and there alone. */
  async function verify({
    rendered = {},
    edit,
    version,
    port,
    token,
    authz,
  }: {
    readonly rendered?: object;
    readonly edit?: Edit;
    readonly version?: string;
    readonly port?: number;
    readonly token?: string;
    readonly authz?: string;
  }) {
    const config = { ...suite.config, ...(authz && { listen: authz }) };
    const [admin = 0] = await freePorts(1);
    const options = { upstream: apiPort(), admin, ...(edit && { edit }), ...(version && { version }) };
    if (port === undefined) envoy = await startRenderedEnvoy({ ...config, ...rendered }, options);
    const file = writeFixture('verify.yaml', config);
    const url = `http://127.0.0.1:${port ?? envoy?.port}`;
    const { code, stdout, stderr } = await runCommand('verify', [url, '--config', file], {
      input: token ?? suite.owner,
    });
    expect(stderr).to.equal('');
    // What a difference means stands in the page.
    for (const [, meaning = ''] of stdout.matchAll(/^\d+ of \d+: (.+)$/gm)) expect(page).to.contain(`| ${meaning} |`);
    return { code, text: stdout };
  }

  for (const version of envoyVersions) {
    it(`finds nothing at Envoy ${version} where it is rendered from the configuration`, async () => {
      const { code, text } = await verify({ version });
      expect({ code, differences: text.match(/DIFF.*/g) }).to.deep.equal({ code: 0, differences: null });
      for (const row of [
        /^ok +GET \/healthz, public path +an answer of the API +404 text\/html, not from account-authz$/m,
        // GET is no method of this one.
        /^ok +GET \/hooks, public path +404 route_unknown +404, not from account-authz$/m,
        /^ok +GET \/static\/api\/subscriptions\/accounts\/:account_id, below public \/static\/\* +404 text\/html, as nonsense/m,
        /^ok +GET \/static\/..\/ready, admin of Envoy +not Envoy's admin/m,
        /^ok +GET \/api\/subscriptions, false signature +401 token_invalid +401 token_invalid$/m,
        /^ok +GET \/api\/subscriptions, no token, host account-authz-verify\.api\.test:\d+ +401 token_missing +401 token_missing$/m,
        /^ok +GET \/api\/subscriptions, another account in the host :account_id\.api\.test +403 account_mismatch +403 account_mismatch$/m,
      ])
        expect(text).to.match(row);
      expect(text).to.not.contain('acct1');
      // What reached the API: the token's own account, on each route.
      expect(seen.filter(path => path.startsWith('/api'))).to.deep.equal([
        '/api/subscriptions',
        '/api/subscriptions/accounts/acct1',
      ]);
    });
  }

  it('finds nothing without a token', async () => expect(await verify({ token: '' })).to.include({ code: 0 }));

  const { routes } = configuration('') as { readonly routes: readonly object[] };
  const strip = { pattern: { regex: '^/static/(.*)$' }, substitution: '/\\1' };
  const rows: readonly (readonly [name: string, how: Parameters<typeof verify>[0], row: RegExp, meaning: string])[] = [
    [
      'Envoy does not call account-authz',
      { edit: withoutCheck },
      /DIFF +GET \/api\/subscriptions, no token +401 token_missing +200 application\/json, not from account-authz\n/,
      'account-authz refused nothing at all',
    ],
    [
      'account-authz is stopped, and Envoy fails open',
      { edit: failOpen, authz: '127.0.0.1:9' },
      /DIFF +GET \/api\/subscriptions, no token +401 token_missing +200 application\/json, not from account-authz\n/,
      'or account-authz does not answer and Envoy lets requests through (`failure_mode_allow`)',
    ],
    [
      'account-authz is asked for another path',
      { edit: toOwnPath },
      /DIFF +GET \/api\/subscriptions, no token +401 token_missing +404 route_unknown\n/,
      'account-authz sees another path or host than the client sent',
    ],
    [
      'the call of account-authz fails',
      { edit: forbidden, authz: '127.0.0.1:9' },
      /DIFF +GET \/api\/subscriptions, no token +401 token_missing +403, not from account-authz\n/,
      'answered in the place of account-authz, whose call may fail',
    ],
    [
      'Envoy does not show an account header',
      { rendered: { account: { ...settings.account, headers: undefined } } },
      /DIFF +GET \/api\/subscriptions, another account in the header x-account-id +403 account_mismatch +200/,
      'account-authz does not see the account header x-account-id',
    ],
    [
      'Envoy calls account-authz for a public path',
      { rendered: { public: settings.public.slice(1), routes: [...routes, { path: '/healthz' }] } },
      /DIFF +GET \/healthz, public path +an answer of the API +404 route_unknown\n/,
      'Envoy calls account-authz for a public path',
    ],
    [
      'Envoy has no route for a host',
      { rendered: { account: { ...account, hosts: ['127.0.0.1', 'api.test'] } } },
      /DIFF +GET \/api\/subscriptions, no token, host account-authz-verify\.api\.test:\d+ +401 token_missing +404,/,
      'Envoy has no route for this path or this host',
    ],
    [
      'account-authz does not see the host',
      { edit: replaceHeader(':authority', '"api.test"') },
      /DIFF +GET \/api\/subscriptions, another account in the host :account_id\.api\.test +403 account_mismatch +200/,
      'account-authz does not see the host that the client asked for',
    ],
    [
      'a rewrite of a public subtree leads to the protected API',
      { edit: rewriteStatic({ regex_rewrite: strip }) },
      /DIFF +GET \/static\/api\/subscriptions\/accounts\/:account_id, below public \/static\/\* +404 text\/html, as nonsense there +200 application\/json/,
      'may lead it to the protected API without a check',
    ],
    [
      'a route leads to the admin interface of Envoy',
      { edit: addAdmin({ prefix: '/envoy/' }, { prefix_rewrite: '/' }) },
      /DIFF +GET \/envoy\/ready, admin of Envoy +not Envoy's admin +200 text\/plain/,
      "Envoy's admin interface is served",
    ],
  ];
  for (const [name, how, row, meaning] of rows) {
    it(`says that ${name}`, async () => {
      const { code, text } = await verify(how);
      expect(text).to.match(row);
      expect(text).to.contain(meaning).and.contain('look at: ');
      expect(code).to.equal(3);
    });
  }

  it('says that the URL may lead past Envoy', async () => {
    const { code, text } = await verify({ port: apiPort() });
    expect(code).to.equal(3);
    expect(text).to.match(/^DIFF +GET \/api\/subscriptions, no token +401 token_missing +200 application\/json/m);
    expect(text).to.contain('the URL leads to the API past Envoy');
  });
});
