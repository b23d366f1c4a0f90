// What the demo does not show of its authentication service: refused sign-ins and sessions, and what a rotation and a restart keep.
// Tokens, their claims and rotations: demo.test.ts and compose-client.test.ts.
import { expect } from 'chai';
import { type AuthenticationService, startAuthenticationService } from '../../demo/authentication-service.ts';
import { alice, billingJob, bob, webApp } from '../../demo/directory.ts';
import { jsonOf, send } from '../../demo/http-client.ts';
import { authorize, deriveAccountToken, newProofKey, requestBackendToken, signIn } from '../../demo/oauth-client.ts';

describe('the authentication service', () => {
  let service: AuthenticationService;
  beforeEach(async () => {
    service = await startAuthenticationService({ audience: 'https://api.example.com/subscriptions' });
  });
  afterEach(() => service.stop());

  const sessionOf = async (): Promise<string> =>
    String(jsonOf(await signIn(service.issuer, alice.name, alice.password)).session_token);
  const publishedKeys = async (): Promise<readonly object[]> =>
    jsonOf(await send({ origin: service.issuer, target: '/.well-known/jwks.json' })).keys as readonly object[];

  it('signs in by the password of the user alone, and reads bodies of JSON alone', async () => {
    const response = await signIn(service.issuer, alice.name, alice.password);
    expect(response.headers['set-cookie']?.[0]).to.match(/^session=[\w-]{43};.* HttpOnly; SameSite=Lax$/);
    for (const [user, password] of [
      [alice.name, bob.password],
      ['mallory', alice.password],
      ['mallory', ''],
    ] as const) {
      expect(await signIn(service.issuer, user, password)).to.include({ status: 401 });
    }
    const large = JSON.stringify({ user: 'alice', password: 'x'.repeat(5000) });
    for (const body of ['user=alice', '"alice"', '{"user":"alice"}', large]) {
      const refused = await send({ origin: service.issuer, method: 'POST', target: '/auth/sign-in', body });
      expect(refused.status, body.slice(0, 20)).to.equal(400);
    }
  });

  it('gives no code and no token without a session', async () => {
    const { access_token } = jsonOf(await requestBackendToken(service.issuer, billingJob));
    const response = await authorize(service.issuer, webApp, 'no-session', newProofKey().challenge);
    expect(jsonOf(response).error).to.equal('login_required');
    for (const session of ['no-session', String(access_token)])
      expect((await deriveAccountToken(service.issuer, session, 'acme')).status).to.equal(401);
  });

  it('keeps sessions in a rotation and a restart, and publishes no private member', async () => {
    const session = await sessionOf();
    await service.rotateKeys({ hard: true });
    const keys = await publishedKeys();
    expect(keys.map(key => Object.keys(key).sort().join())).to.deep.equal(['alg,crv,kid,kty,use,x,y']);
    await service.stop();
    expect(await publishedKeys().catch((error: NodeJS.ErrnoException) => error.code)).to.equal('ECONNREFUSED');
    await service.startAgain();
    expect(await publishedKeys()).to.deep.equal(keys);
    expect((await deriveAccountToken(service.issuer, session, 'acme')).status).to.equal(200);
  });
});
