// `verify` against real Envoys: one that does what the configuration says, and four that do not, each in its own way.
import { expect } from 'chai';
import type { Document } from 'yaml';
import { runCommand } from '../support/command.ts';
import { writeFixture } from '../support/config-file.ts';
import {
  connectionManagerPath,
  defaultEnvoyVersion,
  envoyVersions,
  freePorts,
  httpFilterPath,
  type RunningEnvoy,
  startEnvoy,
} from '../support/envoy.ts';
import { bearer, configuration, installEnvoys, type Lab, startLab } from './lab.ts';

const checkFilter = 'envoy.filters.http.ext_authz';

describe('verify and a running gateway', () => {
  let lab: Lab;
  let file: string;
  const envoys: RunningEnvoy[] = [];

  before(async function () {
    this.timeout(300_000);
    await installEnvoys();
    lab = await startLab();
    file = writeFixture('verify.yaml', configuration(lab.jwksUrl));
  });
  after(async () => {
    for (const envoy of envoys) await envoy.stop();
    await lab?.stop();
  });
  beforeEach(() => lab.upstream.clear());

  async function start(
    edit?: (bootstrap: Document) => void,
    authz = lab.service.address,
    version: (typeof envoyVersions)[number] = defaultEnvoyVersion,
  ): Promise<number> {
    const envoy = await startEnvoy({ version, upstream: lab.upstream.port, authz, ...(edit && { edit }) });
    envoys.push(envoy);
    return envoy.port;
  }

  async function verify(port: number, token: string): Promise<{ readonly code: number; readonly text: string }> {
    const url = `http://127.0.0.1:${port}`;
    const { code, stdout, stderr } = await runCommand('verify', [url, '--config', file], { input: token });
    if (process.env.SHOW_VERIFY !== undefined) process.stdout.write(`${stdout}${stderr}exit ${code}\n\n`);
    expect(stderr).to.equal('');
    return { code, text: stdout };
  }

  it('finds nothing at the shipped Envoy, with and without a token', async () => {
    const port = await start();
    const { code, text } = await verify(port, await bearer());
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

  for (const version of envoyVersions.filter(each => each !== defaultEnvoyVersion)) {
    it(`finds nothing at Envoy ${version}`, async () => {
      expect(await verify(await start(undefined, lab.service.address, version), await bearer())).to.include({
        code: 0,
      });
    });
  }

  it('says that Envoy does not call account-authz', async () => {
    const port = await start(bootstrap => {
      for (const name of [checkFilter, 'envoy.filters.http.rbac'])
        bootstrap.deleteIn(httpFilterPath(bootstrap, name).slice(0, -1));
      const manager = connectionManagerPath(bootstrap);
      bootstrap.setIn(
        [...manager, 'route_config', 'virtual_hosts', 0, 'routes'],
        [{ match: { path_separated_prefix: '/api/subscriptions' }, route: { cluster: 'upstream' } }],
      );
    });
    const { code, text } = await verify(port, await bearer());
    expect(code).to.equal(3);
    expect(text).to.match(
      /^DIFF +GET \/api\/subscriptions, no token +401 token_missing +200, not from account-authz$/m,
    );
    expect(text).to.contain('account-authz refused nothing at all: Envoy does not call account-authz');
    expect(text).to.contain('--envoy-admin');
  });

  it('says that account-authz is asked for another path', async () => {
    const port = await start(bootstrap => {
      const manager = connectionManagerPath(bootstrap);
      const everything = { match: { prefix: '/' }, route: { cluster: 'upstream' } };
      bootstrap.setIn([...manager, 'route_config', 'virtual_hosts', 0, 'routes'], [everything]);
      const filters = [...manager, 'http_filters'];
      const code = `function envoy_on_request(handle)
        handle:headers():replace(":path", "/internal" .. handle:headers():get(":path"))
      end`;
      const rewrite = {
        name: 'rewrite',
        typed_config: {
          '@type': 'type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua',
          default_source_code: { inline_string: code },
        },
      };
      const { items } = bootstrap.getIn(filters) as { items: unknown[] };
      items.unshift(bootstrap.createNode(rewrite));
    });
    const { code, text } = await verify(port, await bearer());
    expect(code).to.equal(3);
    expect(text).to.match(/^DIFF +GET \/api\/subscriptions, no token +401 token_missing +404 route_unknown$/m);
    expect(text).to.contain('account-authz is asked for another path or host than the client sent');
    expect(text).to.contain('decision line');
  });

  it('says that the call of account-authz fails', async () => {
    const [unused] = await freePorts(1);
    const forbid = (bootstrap: Document): void =>
      bootstrap.setIn([...httpFilterPath(bootstrap, checkFilter), 'status_on_error', 'code'], 'Forbidden');
    const { code, text } = await verify(await start(forbid, `127.0.0.1:${unused}`), await bearer());
    expect(code).to.equal(3);
    expect(text).to.match(
      /^DIFF +GET \/api\/subscriptions, no token +401 token_missing +403, not from account-authz$/m,
    );
    expect(text).to.contain('its call of account-authz fails');
    expect(text).to.contain('account-authz health');
    expect(text).to.match(/^note: 403 for .* is not from account-authz/m);
  });

  it('says that the URL may lead past Envoy', async () => {
    const { code, text } = await verify(lab.upstream.port, await bearer());
    expect(code).to.equal(3);
    expect(text).to.match(/^DIFF +GET \/account-authz-verify\/no\/route, .* 404 route_unknown +200, not from account/m);
    expect(text).to.contain('the URL leads to the API past Envoy');
    expect(text).to.contain('docs/upstream.md');
  });
});
