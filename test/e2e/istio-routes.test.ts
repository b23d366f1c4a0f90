// The routes that `render istio` inserts, in a real Envoy in front of a route to everything, as Istio has it. Every path is asked about there,
// which is what the AuthorizationPolicies do for these. Not covered: istiod itself.
import { expect } from 'chai';
import { parseAllDocuments } from 'yaml';
import { runCommand } from '../../lab/command.ts';
import { defaultEnvoyVersion } from '../../lab/envoy.ts';
import { connectionManagerPath, httpFilterPath } from '../../lab/envoy-bootstrap.ts';
import { exchange, requestBytes } from '../../lab/raw-http.ts';
import { useRunning } from '../support/use-running.ts';
import { onlyRequestOf, reasonOf, useLab } from './lab.ts';

interface Patch {
  readonly applyTo: string;
  readonly patch: { readonly operation: string; readonly value: Record<string, unknown> & { readonly name: string } };
}

const settings = {
  public: [{ path: '/healthz' }, { path: '/assets/*' }],
  protectedResource: { resource: 'https://api.test/mcp' },
};

describe('the routes that render istio inserts', () => {
  const suite = useLab(settings);
  const { lab } = suite;
  const envoy = useRunning(async () => {
    const { stdout } = await runCommand('render', ['istio', '--config', suite.file]);
    const filter = parseAllDocuments(stdout)
      .map(each => each.toJS())
      .find(({ kind }) => kind === 'EnvoyFilter');
    const patches: readonly Patch[] = filter.spec.configPatches;
    const inserted = patches.filter(({ applyTo }) => applyTo === 'HTTP_ROUTE').map(({ patch }) => patch.value);
    const addedFilter = (operation: string) => patches.find(({ patch }) => patch.operation === operation)?.patch.value;
    return suite.start({
      version: defaultEnvoyVersion,
      edit(bootstrap) {
        const upstream = JSON.parse(JSON.stringify(inserted).replaceAll('inbound|8000||', 'upstream'));
        const routes = [...upstream.reverse(), { match: { prefix: '/' }, route: { cluster: 'upstream' } }];
        const manager = connectionManagerPath(bootstrap);
        bootstrap.setIn([...manager, 'route_config', 'virtual_hosts', 0, 'routes'], routes);
        const mutation = httpFilterPath(bootstrap, 'envoy.filters.http.header_mutation').slice(0, -1);
        bootstrap.setIn(mutation, addedFilter('INSERT_BEFORE'));
        const guard = httpFilterPath(bootstrap, 'envoy.filters.http.rbac').slice(0, -1);
        bootstrap.setIn(guard, addedFilter('INSERT_AFTER'));
      },
    });
  });

  it('serve public paths without the headers that the check would judge', async () => {
    for (const path of ['/healthz', '/healthz/', '/assets', '/assets/a/b.css?x']) {
      lab.upstream.clear();
      const lines = ['x-account-id: acct2', 'x.account.id: acct2', 'x-auth-uid: evil', `Authorization: ${suite.owner}`];
      const { status } = await exchange(envoy.port, requestBytes('GET', path, lines));
      expect(status, path).to.equal(200);
      const names = onlyRequestOf(lab.upstream).headers.map(([name]) => name.toLowerCase());
      expect(names.filter(name => /auth|account/.test(name))).to.deep.equal([]);
    }
  });

  const refused = [
    ['POST', '/healthz', 404, 'route_unknown'],
    ['GET', '/healthz/x', 404, 'route_unknown'],
    ['GET', '/assets/a%20b', 400, 'request_invalid'],
    ['GET', '/assets/a;b', 400, 'request_invalid'],
    ['GET', '/api/subscriptions', 401, 'token_missing'],
    ['POST', '/.well-known/oauth-protected-resource/mcp', 404, 'route_unknown'],
  ] as const;
  for (const [method, path, status, reason] of refused) {
    it(`leave ${method} ${path} to the check`, async () => {
      const answer = await exchange(envoy.port, requestBytes(method, path));
      expect([answer.status, reasonOf(answer)]).to.deep.equal([status, reason]);
      expect(lab.upstream.requests).to.deep.equal([]);
    });
  }

  it('answer 404 to a query parameter that overrides the method of a public route', async () => {
    expect(await exchange(envoy.port, requestBytes('GET', '/healthz?%5Fmethod=DELETE'))).to.include({
      status: 404,
      body: '',
    });
    expect(lab.upstream.requests).to.deep.equal([]);
  });

  it('serve the metadata document', async () => {
    const answer = await exchange(envoy.port, requestBytes('GET', '/.well-known/oauth-protected-resource/mcp'));
    expect(answer.status).to.equal(200);
    expect(JSON.parse(answer.body).resource).to.equal('https://api.test/mcp');
  });
});
