// `verify` against real Envoys: those that do what the configuration says, and others that do not, each in its own way.
import { expect } from 'chai';
import type { Document } from 'yaml';
import { runCommand } from '../../lab/command.ts';
import { allPages } from '../../lab/document.ts';
import { type EnvoyOptions, envoyVersions, type RunningEnvoy, startRenderedEnvoy } from '../../lab/envoy.ts';
import { connectionManagerPath, httpFilterPath } from '../../lab/envoy-bootstrap.ts';
import { freePorts } from '../../lab/free-ports.ts';
import { configuration, useLab } from './lab.ts';

const checkFilter = 'envoy.filters.http.ext_authz';

interface Verification {
  readonly code: number;
  readonly text: string;
}

const page = allPages().find(({ path }) => path === 'docs/verify.md')?.text;

/** `file` is the configuration. An empty token is none. What a difference means stands in docs/verify.md. */
async function verifyGateway(file: string, port: number, token: string): Promise<Verification> {
  const url = `http://127.0.0.1:${port}`;
  const { code, stdout, stderr } = await runCommand('verify', [url, '--config', file], { input: token });
  expect(stderr).to.equal('');
  for (const [, meaning = ''] of stdout.matchAll(/^\d+ of \d+: (.+)$/gm))
    expect(page).to.contain(`| ${meaning.replaceAll(file, 'config.yaml')} |`);
  return { code, text: stdout };
}

/** A filter before all others that replaces a header, as a proxy before Envoy may do. `value` is an expression of Lua. */
function replaceHeader(bootstrap: Document, name: string, value: string): void {
  const filters = [...connectionManagerPath(bootstrap), 'http_filters'];
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
  const { items } = bootstrap.getIn(filters) as { items: unknown[] };
  items.unshift(bootstrap.createNode(filter));
}

describe('verify and a running gateway', () => {
  const suite = useLab();
  const { lab } = suite;
  const envoys: RunningEnvoy[] = [];
  after(() => Promise.all(envoys.map(envoy => envoy.stop())));

  async function start(options: EnvoyOptions = {}): Promise<number> {
    const envoy = await suite.start(options);
    envoys.push(envoy);
    return envoy.port;
  }

  const verify = (port: number, token = suite.owner): Promise<Verification> => verifyGateway(suite.file, port, token);

  it('finds nothing at the shipped Envoy, with and without a token', async () => {
    const port = await start();
    const { code, text } = await verify(port);
    expect({ code, differences: text.match(/DIFF/g) }).to.deep.equal({ code: 0, differences: null });
    for (const reason of ['token_missing', 'token_invalid', 'account_mismatch', 'route_unknown'])
      expect(text).to.contain(reason);
    // What reached the API: the token's own account, on each route.
    expect(lab.upstream.requests.map(({ path }) => path)).to.deep.equal([
      '/api/subscriptions',
      '/api/subscriptions/accounts/acct1',
    ]);
    expect(text).to.not.contain('acct1');
    expect(await verify(port, '')).to.include({ code: 0 });
  });

  for (const version of envoyVersions.slice(0, -1)) {
    it(`finds nothing at Envoy ${version}`, async () => {
      expect(await verify(await start({ version }))).to.include({ code: 0 });
    });
  }

  it('says that Envoy does not call account-authz', async () => {
    const port = await start({
      edit: bootstrap => {
        for (const name of [checkFilter, 'envoy.filters.http.rbac'])
          bootstrap.deleteIn(httpFilterPath(bootstrap, name).slice(0, -1));
        const manager = connectionManagerPath(bootstrap);
        bootstrap.setIn(
          [...manager, 'route_config', 'virtual_hosts', 0, 'routes'],
          [{ match: { path_separated_prefix: '/api/subscriptions' }, route: { cluster: 'upstream' } }],
        );
      },
    });
    const { code, text } = await verify(port);
    expect(code).to.equal(3);
    expect(text).to.match(
      /^DIFF +GET \/api\/subscriptions, no token +401 token_missing +200, not from account-authz$/m,
    );
    expect(text).to.contain('account-authz refused nothing at all: Envoy does not call account-authz');
    expect(text).to.contain('--envoy-admin');
  });

  it('says that account-authz is asked for another path', async () => {
    const port = await start({
      edit: bootstrap => {
        const manager = connectionManagerPath(bootstrap);
        const everything = { match: { prefix: '/' }, route: { cluster: 'upstream' } };
        bootstrap.setIn([...manager, 'route_config', 'virtual_hosts', 0, 'routes'], [everything]);
        replaceHeader(bootstrap, ':path', '"/internal" .. handle:headers():get(":path")');
      },
    });
    const { code, text } = await verify(port);
    expect(code).to.equal(3);
    expect(text).to.match(/^DIFF +GET \/api\/subscriptions, no token +401 token_missing +404 route_unknown$/m);
    expect(text).to.contain('account-authz is asked for another path or host than the client sent');
    expect(text).to.contain('decision line');
  });

  it('says that the call of account-authz fails', async () => {
    const [unused] = await freePorts(1);
    const forbid = (bootstrap: Document): void =>
      bootstrap.setIn([...httpFilterPath(bootstrap, checkFilter), 'status_on_error', 'code'], 'Forbidden');
    const { code, text } = await verify(await start({ edit: forbid, authz: `127.0.0.1:${unused}` }));
    expect(code).to.equal(3);
    expect(text).to.match(
      /^DIFF +GET \/api\/subscriptions, no token +401 token_missing +403, not from account-authz$/m,
    );
    expect(text).to.contain('its call of account-authz fails');
    expect(text).to.contain('account-authz health');
    expect(text).to.match(/^note: 403 for .* is not from account-authz/m);
  });

  it('says that the URL may lead past Envoy', async () => {
    const { code, text } = await verify(lab.upstream.port);
    expect(code).to.equal(3);
    expect(text).to.match(/^DIFF +GET \/account-authz-verify\/no\/route, .* 404 route_unknown +200, not from account/m);
    expect(text).to.contain('the URL leads to the API past Envoy');
    expect(text).to.contain('docs/upstream.md');
  });
});

describe('verify and a gateway with public paths and hosts', () => {
  const account = { headers: ['x-account-id'], query: ['account_id'] };
  const settings = {
    public: [{ path: '/healthz' }, { path: '/hooks', methods: ['POST'] }],
    account: { ...account, hosts: ['127.0.0.1', 'api.test', ':account_id.api.test'] },
  };
  const suite = useLab(settings);
  const { lab } = suite;
  let envoy: RunningEnvoy | undefined;
  afterEach(() => envoy?.stop());

  /** `rendered` replaces members of the configuration from which Envoy is rendered, and there alone. */
  async function verify(rendered: object = {}, edit?: (bootstrap: Document) => void): Promise<Verification> {
    const options = { upstream: lab.upstream.port, ...(edit && { edit }) };
    envoy = await startRenderedEnvoy({ ...suite.config, ...rendered }, options);
    return verifyGateway(suite.file, envoy.port, suite.owner);
  }

  it('finds nothing where Envoy is rendered from the configuration', async () => {
    const { code, text } = await verify();
    expect({ code, differences: text.match(/DIFF/g) }).to.deep.equal({ code: 0, differences: null });
    for (const row of [
      /^ok +GET \/healthz, public path +an answer of the API +200, not from account-authz$/m,
      // GET is no method of this one.
      /^ok +GET \/hooks, public path +404 route_unknown +404, not from account-authz$/m,
      /^ok +GET \/api\/subscriptions, no token, host api\.test:\d+ +401 token_missing +401 token_missing$/m,
      /^ok +GET \/api\/subscriptions, no token, host account-authz-verify\.api\.test:\d+ +401 token_missing +401 token_missing$/m,
      /^ok +GET \/api\/subscriptions, another account in the host :account_id\.api\.test +403 account_mismatch +403 account_mismatch$/m,
    ])
      expect(text).to.match(row);
    expect(lab.upstream.requests.map(({ path }) => path)).to.deep.equal([
      '/healthz',
      '/api/subscriptions',
      '/api/subscriptions/accounts/acct1',
    ]);
  });

  it('says that Envoy does not show an account header', async () => {
    const { code, text } = await verify({ account: { ...settings.account, headers: undefined } });
    expect(code).to.equal(3);
    expect(text).to.match(
      /^DIFF +GET \/api\/subscriptions, another account in the header x-account-id +403 account_mismatch +200, not from account-authz$/m,
    );
    expect(text).to.match(/^2 of \d+: the API answered: account-authz does not see the account header x-account-id/m);
  });

  it('says that Envoy calls account-authz for a public path', async () => {
    const { routes } = configuration(lab.jwksUrl) as { readonly routes: readonly object[] };
    const { code, text } = await verify({ public: undefined, routes: [...routes, { path: '/healthz' }] });
    expect(code).to.equal(3);
    expect(text).to.match(/^DIFF +GET \/healthz, public path +an answer of the API +404 route_unknown$/m);
    expect(text).to.match(/^1 of \d+: Envoy calls account-authz for a public path/m);
    expect(text).to.contain('look at: account-authz render (again');
  });

  it('says that Envoy has no route for a host', async () => {
    const { code, text } = await verify({ account: { ...account, hosts: ['127.0.0.1', 'api.test'] } });
    expect(code).to.equal(3);
    expect(text).to.match(
      /^DIFF +GET \/api\/subscriptions, no token, host account-authz-verify\.api\.test:\d+ +401 token_missing +404, not from account-authz$/m,
    );
    expect(text).to.match(/^3 of \d+: Envoy has no route for this path or this host/m);
  });

  it('says that account-authz does not see the host', async () => {
    const { code, text } = await verify({}, bootstrap => replaceHeader(bootstrap, ':authority', '"api.test"'));
    expect(code).to.equal(3);
    expect(text).to.match(
      /^DIFF +GET \/api\/subscriptions, another account in the host :account_id\.api\.test +403 account_mismatch +200, not from account-authz$/m,
    );
    expect(text).to.match(
      /^2 of \d+: the API answered: account-authz does not see the host that the client asked for$/m,
    );
  });
});
