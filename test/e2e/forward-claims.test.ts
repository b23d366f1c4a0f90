// Claims for the upstream through real Envoys: what the service gets, and what a client can forge.
import { expect } from 'chai';
import { runCommand } from '../../lab/command.ts';
import { envoyVersions } from '../../lab/envoy.ts';
import { exchange, http2Exchange, requestBytes } from '../../lab/raw-http.ts';
import { secrets } from '../../lab/secrets.ts';
import { useRunning } from '../support/use-running.ts';
import { bearer, identity, onlyRequestOf, ownedFields, useLab } from './lab.ts';

const path = '/api/subscriptions/accounts/acct1';
/** A claim that no log, metric and page may show: each suite looks for it. */
const email = secrets.fresh('claim');
const mine = ['x-auth-email', email] as const;
const forged = [
  ['two lines', ['x-auth-email: evil', 'x-auth-email: evil']],
  ['mixed case', ['X-Auth-EMAIL: evil', 'x-AUTH-plan: evil']],
  ['dots and other signs', ['x.auth.email: evil', 'x-auth~app-plan: evil', 'x-auth-app.plan: evil']],
  ['underscores', ['x_auth_email: evil', 'x-auth_email: evil', 'X_AUTH_APP_PLAN: evil', 'x-auth-app_plan: evil']],
  ['a claim that the token does not have', ['x-auth-app-plan: evil']],
] as const;

describe('claims for the upstream', () => {
  const suite = useLab({
    forwardClaims: { email: 'email', 'app-plan': '/meta/plan' },
    public: [{ path: '/open/*' }],
  });
  let authorization: string;
  before(async () => {
    authorization = `Authorization: ${await bearer({ email })}`;
  });

  for (const version of envoyVersions) {
    describe(`Envoy ${version}`, () => {
      const envoy = useRunning(() => suite.startRendered(['--underscores', 'drop'], { version }));
      const send = (target: string, lines: readonly string[]) =>
        exchange(envoy.port, requestBytes('GET', target, lines));

      for (const [name, lines] of forged) {
        it(`replaces or removes ${name}, on a public route too`, async () => {
          expect(await send(path, [authorization, ...lines])).to.include({ status: 200 });
          expect(ownedFields(onlyRequestOf(suite.lab.upstream))).to.have.deep.members([...identity, mine]);
          suite.lab.upstream.clear();
          expect(await send('/open/x', lines)).to.include({ status: 200 });
          expect(JSON.stringify(onlyRequestOf(suite.lab.upstream))).to.not.include('evil');
        });
      }

      it('sends numbers and booleans over HTTP/2 too, and none that a header cannot have', async () => {
        const ask = async (claims: object) => {
          const headers = {
            ':path': path,
            authorization: await bearer(claims as Record<string, unknown>),
            'x-auth-email': ['evil', 'evil'],
          };
          expect(await http2Exchange(envoy.port, { headers })).to.include({ status: 200 });
          const fields = ownedFields(onlyRequestOf(suite.lab.upstream)).slice(identity.length);
          suite.lab.upstream.clear();
          return fields;
        };
        expect(await ask({ email: 7, meta: { plan: true } })).to.deep.equal([
          ['x-auth-email', '7'],
          ['x-auth-app-plan', 'true'],
        ]);
        expect(await ask({ email: 'a\r\nx-auth-acc: evil', meta: { plan: ['pro'] } })).to.deep.equal([]);
      });
    });
  }

  it('are named by explain, which says whether each is sent and shows no value', async () => {
    const args = ['--config', suite.file, '--path', path];
    const token = authorization.slice('Authorization: Bearer '.length);
    const { stdout } = await runCommand('explain', args, { input: token });
    expect(stdout).to.match(/^ {2}the upstream gets {2}x-auth-email: \(not shown\)$/m);
    expect(stdout).to.match(/^ {2}it does not get {2}x-auth-app-plan$/m);
    const { stdout: json } = await runCommand('explain', [...args, '--json'], { input: token });
    expect(JSON.parse(json).forwarded).to.deep.equal({ 'x-auth-email': true, 'x-auth-app-plan': false });
    expect(stdout + json).to.not.include(email);
  });
});
