// The authentication service of the demo: its five endpoints over real HTTP, and its key rotation.
import { expect } from 'chai';
import { createRemoteJWKSet, decodeProtectedHeader, type JWTPayload, jwtVerify } from 'jose';
import { type AuthenticationService, startAuthenticationService } from '../../demo/authentication-service.ts';
import { alice, billingJob, bob, webApp } from '../../demo/directory.ts';
import { type HttpResponse, jsonOf, send } from '../../demo/http-client.ts';
import {
  authorize,
  deriveAccountToken,
  exchangeCode,
  newProofKey,
  refresh,
  requestBackendToken,
  signIn,
} from '../../demo/oauth-client.ts';

const audience = 'https://api.example.com/subscriptions';

describe('the authentication service', () => {
  let service: AuthenticationService;

  before(async () => {
    service = await startAuthenticationService({ audience });
  });

  after(() => service.stop());

  describe('POST /auth/sign-in', () => {
    it('returns a session and the accounts of the user', async () => {
      const response = await signIn(service.issuer, alice.name, alice.password);
      expect(response.status).to.equal(200);
      expect(response.headers['cache-control']).to.equal('no-store');
      expect(jsonOf(response)).to.deep.include({
        uid: alice.uid,
        home_account: 'acme',
        accounts: [
          { account_id: 'acme', role: 'owner' },
          { account_id: 'globex', role: 'member' },
        ],
      });
      expect(jsonOf(response).session_token).to.match(/^[\w-]{43}$/);
    });

    it('sets the session as an HttpOnly cookie', async () => {
      const response = await signIn(service.issuer, alice.name, alice.password);
      expect(response.headers['set-cookie']?.[0]).to.match(/^session=[\w-]{43};.* HttpOnly; SameSite=Lax$/);
    });

    for (const [name, user, password] of [
      ['a wrong password', alice.name, 'looking-glass'],
      ['the password of somebody else', alice.name, bob.password],
      ['an unknown user', 'mallory', alice.password],
      ['an unknown user without a password', 'mallory', ''],
    ] as const) {
      it(`refuses ${name}`, async () => {
        const response = await signIn(service.issuer, user, password);
        expect(response.status).to.equal(401);
        expect(jsonOf(response)).to.deep.equal({ error: 'invalid_credentials' });
      });
    }

    for (const [name, body] of [
      ['a body that is not JSON', 'user=alice'],
      ['a body that is not an object', '"alice"'],
      ['a body without a password', '{"user":"alice"}'],
      ['a body that is too large', JSON.stringify({ user: 'alice', password: 'x'.repeat(5000) })],
    ] as const) {
      it(`refuses ${name}`, async () => {
        const response = await send({ origin: service.issuer, method: 'POST', target: '/auth/sign-in', body });
        expect(response.status).to.equal(400);
      });
    }
  });

  describe('POST /oauth2/token with an authorization code', () => {
    it('returns an access token of the home account, a refresh token and an ID token', async () => {
      const { code, verifier } = await newCode();
      const response = await exchangeCode(service.issuer, webApp, code, verifier);
      expect(response.status).to.equal(200);
      expect(jsonOf(response)).to.include.keys('access_token', 'refresh_token', 'id_token');
      expect(await claimsOf(response)).to.deep.include({
        uid: alice.uid,
        app: webApp.clientId,
        acc: 'acme',
        role: 'owner',
        aud: audience,
        iss: service.issuer,
      });
    });

    it('refuses a wrong verifier', async () => {
      const { code } = await newCode();
      const response = await exchangeCode(service.issuer, webApp, code, newProofKey().verifier);
      expect(response.status).to.equal(400);
      expect(jsonOf(response).error).to.equal('invalid_grant');
    });

    it('refuses a code that was used', async () => {
      const { code, verifier } = await newCode();
      expect((await exchangeCode(service.issuer, webApp, code, verifier)).status).to.equal(200);
      expect((await exchangeCode(service.issuer, webApp, code, verifier)).status).to.equal(400);
    });

    it('refuses an authorization request without PKCE', async () => {
      const query = new URLSearchParams({
        client_id: webApp.clientId,
        response_type: 'code',
        redirect_uri: webApp.redirectUri,
        scope: 'openid',
      });
      const response = await send({ origin: service.issuer, target: `/oauth2/authorize?${query}` });
      expect(new URL(response.headers.location ?? '').searchParams.get('error')).to.equal('invalid_request');
    });

    it('refuses an authorization request without a session', async () => {
      const response = await authorize(service.issuer, webApp, 'no-session', newProofKey().challenge);
      expect(response.status).to.equal(401);
      expect(jsonOf(response).error).to.equal('login_required');
    });

    it('does not redirect to an unregistered redirect URI', async () => {
      const elsewhere = { ...webApp, redirectUri: 'https://elsewhere.example/callback' };
      const response = await authorize(service.issuer, elsewhere, await sessionOf(alice), newProofKey().challenge);
      expect(response.status).to.equal(400);
      expect(response.headers.location).to.equal(undefined);
    });
  });

  describe('POST /oauth2/token with a refresh token', () => {
    it('returns a new access token and a new refresh token', async () => {
      const first = await newTokens();
      const response = await refresh(service.issuer, webApp, String(first.refresh_token));
      expect(response.status).to.equal(200);
      expect(jsonOf(response).access_token).to.not.equal(first.access_token);
      expect(jsonOf(response).refresh_token).to.not.equal(first.refresh_token);
      expect(await claimsOf(response)).to.deep.include({ uid: alice.uid, acc: 'acme', role: 'owner' });
    });

    it('refuses a used refresh token, and then also the ones that replaced it', async () => {
      const first = await newTokens();
      const second = jsonOf(await refresh(service.issuer, webApp, String(first.refresh_token)));
      expect((await refresh(service.issuer, webApp, String(first.refresh_token))).status).to.equal(400);
      expect((await refresh(service.issuer, webApp, String(second.refresh_token))).status).to.equal(400);
    });
  });

  describe('POST /oauth2/token with client credentials', () => {
    it('returns an access token of the client itself', async () => {
      const response = await requestBackendToken(service.issuer, billingJob);
      expect(response.status).to.equal(200);
      expect(await claimsOf(response)).to.deep.include({
        uid: billingJob.uid,
        app: billingJob.clientId,
        acc: billingJob.account,
        role: billingJob.role,
      });
    });

    it('refuses a wrong secret', async () => {
      const response = await requestBackendToken(service.issuer, { ...billingJob, clientSecret: 'guessed' });
      expect(response.status).to.equal(401);
    });
  });

  describe('POST /api/accounts/:account_id/token', () => {
    for (const [account, role] of [
      ['acme', 'owner'],
      ['globex', 'member'],
    ] as const) {
      it(`returns a token of ${account} with the role of the user in this account`, async () => {
        const response = await deriveAccountToken(service.issuer, await sessionOf(alice), account);
        expect(response.status).to.equal(200);
        expect(jsonOf(response)).to.deep.include({ account_id: account, role, token_type: 'Bearer' });
        expect(await claimsOf(response)).to.deep.include({ uid: alice.uid, app: webApp.clientId, acc: account, role });
      });
    }

    for (const account of ['initech', 'unknown']) {
      it(`refuses ${account}, of which the user is not a member`, async () => {
        const response = await deriveAccountToken(service.issuer, await sessionOf(alice), account);
        expect(response.status).to.equal(403);
        expect(jsonOf(response)).to.deep.equal({ error: 'not_a_member' });
      });
    }

    it('refuses a request without a session', async () => {
      expect((await deriveAccountToken(service.issuer, 'no-session', 'acme')).status).to.equal(401);
    });

    it('refuses an access token in place of a session', async () => {
      const { access_token } = await newTokens();
      expect((await deriveAccountToken(service.issuer, String(access_token), 'globex')).status).to.equal(401);
    });
  });

  describe('GET /.well-known/openid-configuration', () => {
    it('names the issuer and the endpoints', async () => {
      const response = await send({ origin: service.issuer, target: '/.well-known/openid-configuration' });
      expect(response.headers['content-type']).to.match(/^application\/json/);
      expect(jsonOf(response)).to.deep.include({
        issuer: service.issuer,
        jwks_uri: service.jwksUrl,
        token_endpoint: `${service.issuer}/oauth2/token`,
        authorization_endpoint: `${service.issuer}/oauth2/authorize`,
        code_challenge_methods_supported: ['S256'],
      });
    });
  });

  describe('GET /.well-known/jwks.json', () => {
    it('has only public members', async () => {
      const keys = await publishedKeys();
      expect(keys).to.have.length(1);
      expect(keys[0]).to.have.all.keys('kty', 'crv', 'x', 'y', 'kid', 'alg', 'use');
    });
  });

  describe('signing keys', () => {
    let own: AuthenticationService;

    beforeEach(async () => {
      own = await startAuthenticationService({ audience });
    });

    afterEach(() => own.stop());

    it('overlap in a rotation', async () => {
      const before = own.signingKid;
      await own.rotateKeys();
      expect(own.signingKid).to.not.equal(before);
      expect((await publishedKeys(own)).map(key => key.kid)).to.deep.equal([own.signingKid, before]);
    });

    it('are removed at once in a hard rotation', async () => {
      await own.rotateKeys();
      await own.rotateKeys({ hard: true });
      expect((await publishedKeys(own)).map(key => key.kid)).to.deep.equal([own.signingKid]);
    });

    it('sign the tokens that are issued after the rotation', async () => {
      await own.rotateKeys();
      const { access_token } = jsonOf(await requestBackendToken(own.issuer, billingJob));
      expect(decodeProtectedHeader(String(access_token))).to.deep.equal({
        alg: 'ES256',
        typ: 'at+jwt',
        kid: own.signingKid,
      });
    });

    it('are rotated without an effect on sessions and refresh tokens', async () => {
      const session = await sessionOf(alice, own);
      const { refresh_token } = await newTokens(own);
      await own.rotateKeys({ hard: true });
      expect((await refresh(own.issuer, webApp, String(refresh_token))).status).to.equal(200);
      expect((await deriveAccountToken(own.issuer, session, 'acme')).status).to.equal(200);
    });

    it('sign any claims with any header', async () => {
      const token = await own.signToken({ uid: 'anybody' }, { typ: 'JWT' });
      const { payload, protectedHeader } = await jwtVerify(token, createRemoteJWKSet(new URL(own.jwksUrl)));
      expect(payload).to.deep.equal({ uid: 'anybody' });
      expect(protectedHeader).to.deep.equal({ alg: 'ES256', typ: 'JWT', kid: own.signingKid });
    });
  });

  it('restarts at the same address with the same keys and sessions', async () => {
    const own = await startAuthenticationService({ audience });
    const session = await sessionOf(alice, own);
    const keys = await publishedKeys(own);
    await own.stop();
    const away = await publishedKeys(own).catch((error: NodeJS.ErrnoException) => error.code);
    expect(away).to.equal('ECONNREFUSED');
    await own.startAgain();
    expect(await publishedKeys(own)).to.deep.equal(keys);
    expect((await deriveAccountToken(own.issuer, session, 'acme')).status).to.equal(200);
    await own.stop();
  });

  it('fails to start on a port that is in use', async () => {
    const taken = await startAuthenticationService({ audience, port: service.port }).catch(
      (error: NodeJS.ErrnoException) => error.code,
    );
    expect(taken).to.equal('EADDRINUSE');
  });

  async function sessionOf(user: { readonly name: string; readonly password: string }, at = service): Promise<string> {
    return String(jsonOf(await signIn(at.issuer, user.name, user.password)).session_token);
  }

  async function newCode(at = service): Promise<{ code: string; verifier: string }> {
    const { verifier, challenge } = newProofKey();
    const { headers } = await authorize(at.issuer, webApp, await sessionOf(alice, at), challenge);
    return { code: new URL(headers.location ?? '').searchParams.get('code') ?? '', verifier };
  }

  async function newTokens(at = service): Promise<Readonly<Record<string, unknown>>> {
    const { code, verifier } = await newCode(at);
    return jsonOf(await exchangeCode(at.issuer, webApp, code, verifier));
  }

  async function publishedKeys(at = service): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const response = await send({ origin: at.issuer, target: '/.well-known/jwks.json' });
    return jsonOf(response).keys as readonly Readonly<Record<string, unknown>>[];
  }

  /** The claims of the access token in a response, verified as a resource server does. */
  async function claimsOf(response: HttpResponse): Promise<JWTPayload> {
    const keys = createRemoteJWKSet(new URL(service.jwksUrl));
    const options = { issuer: service.issuer, audience, typ: 'at+jwt', algorithms: ['ES256'] };
    return (await jwtVerify(String(jsonOf(response).access_token), keys, options)).payload;
  }
});
