// The keys of the token verifier, its cache, verifications at the same time, and the detail of a refusal.
import type { KeyObject } from 'node:crypto';
import { expect } from 'chai';
import { createDeferred } from '../../lab/deferred.ts';
import { signingKey } from '../../lab/signing-key.ts';
import { now, token, uid } from '../../lab/token.ts';
import type { VerificationKey } from '../../src/keys/jwks.ts';
import { createVerifiedTokens } from '../../src/token/verified-tokens.ts';
import { createTokenVerifier, type IssuerKeys } from '../../src/token/verifier.ts';
import { countingKey, forgedSignature, lab, verificationKey } from './verifier-lab.ts';

const unknown = { kind: 'none', detail: 'kid is not a key of the issuer' } as const;

describe('token verifier', () => {
  describe('signing keys', () => {
    it('keys_unavailable is the answer while the signing key is unavailable', async () => {
      const at = await lab();
      at.keys.clear();
      at.missing = 'unavailable';
      expect(await at.reasonOf(await token())).to.equal('keys_unavailable');
    });
    it('a token of an unknown issuer is refused even while keys are unavailable', async () => {
      const at = await lab();
      at.missing = 'unavailable';
      at.keys.clear();
      expect(await at.reasonOf(await token({ claims: { iss: 'https://evil.test' } }))).to.equal('token_invalid');
    });
    it('C-027 a token signed by the key of another issuer is refused', async () => {
      const others = { 'https://b.test': { isInForce: () => false, find: () => unknown } };
      expect(await (await lab({ others })).reasonOf(await token({ claims: { iss: 'https://b.test' } }))).to.equal(
        'token_invalid',
      );
    });
    it('a token waits until its key is fetched', async () => {
      const key = await verificationKey(await signingKey('k1'));
      const fetched = {
        'https://b.test': { isInForce: () => true, find: async () => ({ kind: 'key' as const, key }) },
      };
      const at = await lab({ others: fetched });
      const { outcome, cache } = await at.verify(await token({ claims: { iss: 'https://b.test' } }));
      expect(outcome.kind).to.equal('claims');
      expect(cache).to.equal('miss');
    });
    it('J-043 a token without kid is verified by the one key that fits, and stays with it in the cache', async () => {
      const at = await lab();
      const text = await token({ header: { kid: undefined } });
      expect(await at.verify(text)).to.include({ kid: 'k1', cache: 'miss' });
      at.keys.set('k2', await verificationKey(await signingKey('k2')));
      expect(await at.verify(text)).to.include({ kid: 'k1', cache: 'hit' });
      const later = await at.verify(await token({ header: { kid: undefined }, claims: { uid: 'later' } }));
      const detail = 'several keys of the issuer fit, and neither kid nor x5t names one';
      expect(later.outcome).to.deep.equal({ kind: 'refusal', reason: 'token_invalid', detail });
    });
    it('F-014 a fault of a key rejects the verification and refuses no token', async () => {
      const at = await lab();
      const good = await token();
      at.keys.set('k1', { kid: 'k1', thumbprint: 'k1', cryptoKeyFor: () => ({}) as KeyObject });
      const failure: unknown = await at.verify(good).catch((error: unknown) => error);
      expect(failure).to.be.an.instanceOf(TypeError);
    });
    it('a token signed by another key under a known kid is refused', async () => {
      const other = await signingKey('other');
      expect(await (await lab()).reasonOf(await token({ key: { ...other, kid: 'k1' } }))).to.equal('token_invalid');
    });
    it('C-077 the times are checked after the wait for the key', async () => {
      const at = await lab();
      const key = await verificationKey(await signingKey('k1'));
      const fetched = createDeferred<Awaited<ReturnType<IssuerKeys['find']>>>();
      at.find = () => fetched.promise;
      const verifying = at.reasonOf(await token());
      at.clock = now + 3600 + 60;
      fetched.resolve({ kind: 'key', key });
      expect(await verifying).to.equal('token_expired');
    });
    it('a key that is removed during the verification allows no token', async () => {
      const at = await lab();
      const verifying = at.reasonOf(await token());
      at.keys.clear();
      expect(await verifying).to.equal('keys_unavailable');
    });
  });

  describe('verified token cache', () => {
    it('L-014 a second verification of a token is a cache hit', async () => {
      const { verify } = await lab();
      const good = await token();
      expect((await verify(good)).cache).to.equal('miss');
      expect(await verify(good)).to.deep.include({ cache: 'hit', kid: 'k1', signed: undefined });
    });
    it('L-015 a cached token is refused once its key is removed', async () => {
      const at = await lab();
      const good = await token();
      await at.verify(good);
      at.keys.clear();
      expect(await at.reasonOf(good)).to.equal('token_invalid');
    });
    it('L-014 a cached token is refused once another key has its kid', async () => {
      const at = await lab();
      const good = await token();
      await at.verify(good);
      at.keys.set('k1', await verificationKey(await signingKey('k1-next')));
      expect(await at.reasonOf(good)).to.equal('token_invalid');
    });
    it('L-014 the times of a cached token are checked again on each request', async () => {
      const at = await lab();
      const good = await token();
      await at.verify(good);
      at.clock = now + 3600 + 59;
      expect(await at.reasonOf(good)).to.equal('verified');
      at.clock = now + 3600 + 60;
      expect(await at.reasonOf(good)).to.equal('token_expired');
    });
    it('C-078 a cached token is refused while the clock is behind its iat, and accepted afterwards', async () => {
      const at = await lab();
      const good = await token();
      await at.verify(good);
      at.clock = now - 3600;
      expect(await at.reasonOf(good)).to.equal('token_invalid');
      at.clock = now;
      expect(await at.reasonOf(good)).to.equal('verified');
    });
    it('an expired token is removed from the cache', async () => {
      const verifiedTokens = createVerifiedTokens<VerificationKey>(10);
      const at = await lab({ verifiedTokens });
      const text = await token();
      await at.verify(text);
      expect(verifiedTokens.size()).to.equal(1);
      at.clock = now + 7200;
      const { outcome, signed, cache } = await at.verify(text);
      expect(outcome).to.include({ reason: 'token_expired' });
      expect({ uid: signed?.uid, acc: signed?.acc, cache }).to.deep.equal({ uid, acc: 'acct1', cache: 'hit' });
      expect(verifiedTokens.size()).to.equal(0);
    });
    it('a cached token is refused and removed once its issuer is no longer configured', async () => {
      const verifiedTokens = createVerifiedTokens<VerificationKey>(10);
      const text = await token();
      await (await lab({ verifiedTokens })).verify(text);
      const withoutIssuers = createTokenVerifier({
        issuers: new Map(),
        times: { clockToleranceSeconds: 60, maxLifetimeSeconds: 86_400 },
        maxBytes: 8192,
        verifiedTokens,
        maxSignatures: 1,
        now: () => now,
      });
      expect((await withoutIssuers.verify(text, { certificate: '' })).outcome).to.include({ reason: 'token_invalid' });
      expect(verifiedTokens.size()).to.equal(0);
    });
    it('L-014 a refusal is not cached', async () => {
      const at = await lab();
      const bad = await token({ claims: { uid: undefined } });
      await at.verify(bad);
      expect((await at.verify(bad)).cache).to.equal('miss');
    });
  });

  describe('concurrent verifications', () => {
    it('of one token share a single signature check (singleflight)', async () => {
      const at = await lab();
      const counter = await countingKey(at, 'k1');
      const good = await token();
      const outcomes = await Promise.all([at.verify(good), at.verify(good), at.verify(good)]);
      expect(outcomes.map(({ outcome }) => outcome.kind)).to.deep.equal(['claims', 'claims', 'claims']);
      expect(counter.uses).to.equal(1);
      expect((await at.verify(good)).cache).to.equal('hit');
    });
    it('of a refused token share one check, a later one checks again', async () => {
      const at = await lab();
      const counter = await countingKey(at, 'k1');
      const bad = await token({ claims: { uid: undefined } });
      await Promise.all([at.verify(bad), at.verify(bad)]);
      await at.verify(bad);
      expect(counter.uses).to.equal(2);
    });
    it('G-027 beyond maxSignatures in flight are refused as internal, the others proceed', async () => {
      const at = await lab({ maxSignatures: 3 });
      const good = await token();
      const forged = [1, 2, 3, 4].map(i => `${good.slice(0, good.lastIndexOf('.'))}.${forgedSignature(i)}`);
      const outcomes = await Promise.all(forged.map(async text => (await at.verify(text)).outcome));
      expect(outcomes).to.deep.equal([
        ...Array.from({ length: 3 }, () => ({
          kind: 'refusal',
          reason: 'token_invalid',
          detail: 'the signature does not verify',
        })),
        { kind: 'refusal', reason: 'internal', detail: 'too many tokens wait for their verification' },
      ]);
      expect(await at.reasonOf(good)).to.equal('verified');
    });
    it('are synchronous for a token refused before its signature', async () => {
      const at = await lab();
      const other = await token({ claims: { iss: 'https://other.test' } });
      expect(at.verifyNow(other)).to.not.be.a('promise');
      expect(at.verifyNow('a.b.c')).to.not.be.a('promise');
      expect(at.verifyNow(await token())).to.be.a('promise');
    });
  });

  describe('detail for the log', () => {
    it('is that of the compact form for text that is no token', async () => {
      const { outcome } = await (await lab()).verify('a.b.c.d');
      expect(outcome).to.include({ detail: '4 segments, not the three of a signed JWT' });
    });
    it('names why the keys are unavailable, or that the key was replaced', async () => {
      const at = await lab();
      const verifying = at.verify(await token());
      at.keys.clear();
      expect((await verifying).outcome).to.include({ detail: 'the key was replaced meanwhile' });
      at.missing = 'unavailable';
      expect((await at.verify(await token())).outcome).to.include({ detail: 'no key set yet' });
    });
  });
});
