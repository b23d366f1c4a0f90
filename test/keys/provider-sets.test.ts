// Key sets in the shapes in which providers publish them, and the key that each then finds for a token of that provider.
import { createECDH, createPrivateKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { expect } from 'chai';
import type { JWK } from 'jose';
import { parseKeySet, type SkippedKey } from '../../src/keys/jwks.ts';
import { findTokenKey } from '../../src/keys/token-key.ts';
import { isSignedBy } from '../../src/token/signature.ts';

interface Pair {
  readonly privateKey: KeyObject;
  readonly jwk: JWK;
}

interface Shape {
  readonly provider: string;
  /** The whole body. */
  readonly body: (pair: Pair, other: Pair) => string;
  readonly header?: Readonly<Record<string, string>>;
  readonly skipped?: readonly SkippedKey[];
}

// RSA pairs are slow to make.
const [own, foreign] = [1, 2].map(() => toPair(generateKeyPairSync('rsa', { modulusLength: 2048 }))) as [Pair, Pair];

function toPair({ publicKey, privateKey }: { readonly publicKey: KeyObject; readonly privateKey: KeyObject }): Pair {
  return { privateKey, jwk: publicKey.export({ format: 'jwk' }) as JWK };
}

/** One of 256 keys, found without key objects: making thousands in a loop hung Node 20.20 in 1 of 14 runs of this file. */
function ecWithShortX(): Pair {
  const ecdh = createECDH('prime256v1');
  for (let secret = 1; ; secret += 1) {
    const d = Buffer.alloc(32);
    d.writeUInt32BE(secret, 28);
    ecdh.setPrivateKey(d);
    // An uncompressed point: 04, x, y (SEC 1 section 2.3.3).
    const point = ecdh.getPublicKey();
    if (point[1] !== 0) continue;
    const coordinate = (start: number): string => point.subarray(start, start + 32).toString('base64url');
    const jwk = { kty: 'EC', crv: 'P-256', x: coordinate(1), y: coordinate(33) };
    const key = { ...jwk, d: d.toString('base64url') };
    return { privateKey: createPrivateKey({ key, format: 'jwk' }), jwk };
  }
}

const set = (...keys: readonly object[]): string => JSON.stringify({ keys });

const rsaShapes: readonly Shape[] = [
  {
    // https://github.com/cloudfoundry/uaa/issues/449: a sign byte before the modulus, and the PEM as `value`
    provider: 'Cloud Foundry UAA and SAP XSUAA',
    body: ({ jwk }) => {
      const n = Buffer.concat([Buffer.alloc(1), Buffer.from(jwk.n ?? '', 'base64url')]).toString('base64url');
      return set({ kty: 'RSA', e: 'AQAB', use: 'sig', kid: 'sha2-key', alg: 'RS256', value: '-----BEGIN', n });
    },
    header: { kid: 'sha2-key', jku: 'https://uaa.test/token_keys' },
  },
  {
    // https://github.com/jpadilla/pyjwt/issues/857, https://github.com/Abblix/Oidc.Server/pull/263: what a key has not as null
    provider: 'a provider that writes null',
    body: ({ jwk }) => set({ ...jwk, kid: null, use: null, alg: null, key_ops: null, d: null, x5t: null, k: null }),
    header: {},
  },
  {
    // https://github.com/TNG/keycloak-mock/issues/144: base64url with padding
    provider: 'a provider that pads',
    body: ({ jwk }) => set({ ...jwk, n: `${jwk.n}==`, e: 'AQAB', kid: 'padded', use: 'sig', alg: 'RS256' }),
    header: { kid: 'padded' },
  },
  {
    // Two certificates for a rollover; its tokens have x5t and kid, both the thumbprint, old ones only x5t.
    provider: 'Active Directory Federation Services',
    body: ({ jwk }, other) =>
      set({ ...jwk, use: 'sig', x5t: 'Zm9vYmFy', x5c: ['MII='] }, { ...other.jwk, use: 'sig', x5t: 'b3RoZXI' }),
    header: { x5t: 'Zm9vYmFy' },
  },
  {
    // No alg and no use in the keys; one key, and no kid in the token.
    provider: 'SPIRE without set_key_use, a gateway of its own',
    body: ({ jwk }) => set({ ...jwk, kid: 'one' }),
  },
  {
    // https://github.com/keycloak/keycloak/pull/15114: several keys under one kid, which differ by alg and use
    provider: 'ForgeRock AM',
    body: ({ jwk }, other) =>
      set(
        { ...jwk, kid: 'same', use: 'enc', alg: 'RSA-OAEP' },
        { ...other.jwk, kid: 'same', use: 'sig', alg: 'PS512' },
        { ...jwk, kid: 'same', use: 'sig', alg: 'RS256' },
      ),
    header: { kid: 'same' },
    skipped: [
      { key: 'same', reason: 'use: enc' },
      { key: 'same', reason: 'alg PS512 is not one of algorithms' },
    ],
  },
  {
    // A file that an editor of Windows saved (https://github.com/instructure/canvas-lms/issues/2639), on static hosting
    provider: 'static hosting of a file with a byte order mark',
    body: ({ jwk }) => `\uFEFF${set({ ...jwk, kid: 'k' })}\r\n`,
    header: { kid: 'k' },
  },
  {
    // The default of the realm: a key for signatures and one for encryption.
    provider: 'Keycloak',
    body: ({ jwk }, other) =>
      set(
        { ...other.jwk, kid: 'enc', alg: 'RSA-OAEP', use: 'enc' },
        { ...jwk, kid: 'sig', alg: 'RS256', use: 'sig', 'x5t#S256': 'AAEC' },
      ),
    header: { kid: 'sig' },
    skipped: [{ key: 'enc', reason: 'use: enc' }],
  },
];

describe('key set of a provider', () => {
  async function parsedOf(body: string) {
    const parsed = await parseKeySet(Buffer.from(body), ['RS256', 'ES256', 'EdDSA'], { mediaType: 'text/plain' });
    if (parsed.kind === 'problem') throw new Error(parsed.problem);
    return parsed;
  }

  async function verifies(body: string, { privateKey }: Pair, alg: string, { kid, x5t }: Shape['header'] = {}) {
    const parsed = await parsedOf(body);
    const found = findTokenKey(parsed, { alg, kid, x5t, x5tS256: undefined });
    const key = found.kind === 'key' ? found.key.cryptoKeyFor(alg) : undefined;
    if (key === undefined) throw new Error(JSON.stringify(found));
    const header = Buffer.from(JSON.stringify({ alg, kid, x5t })).toString('base64url');
    const signed = `${header}.e30`;
    const signature = sign('sha256', Buffer.from(signed), { key: privateKey, dsaEncoding: 'ieee-p1363' });
    expect(await isSignedBy(key, alg, `${signed}.${signature.toString('base64url')}`)).to.equal(true);
    return parsed;
  }

  for (const { provider, body, header, skipped = [] } of rsaShapes) {
    it(`${provider}: verifies its tokens`, async () => {
      const parsed = await verifies(body(own, foreign), own, 'RS256', header);
      expect(parsed.skipped).to.deep.equal(skipped);
    });
  }

  // https://github.com/keycloak/keycloak/issues/14933
  it('Keycloak before 20, one of 256 EC keys: a coordinate without its leading zero', async () => {
    const pair = ecWithShortX();
    const x = Buffer.from(pair.jwk.x ?? '', 'base64url')
      .subarray(1)
      .toString('base64url');
    const published = { ...pair.jwk, kid: 'ec', use: 'sig', alg: 'ES256' };
    await verifies(set({ ...published, x }), pair, 'ES256', { kid: 'ec' });
    // Filled up, it is the same key as after the upgrade.
    expect((await parsedOf(set({ ...published, x }, published))).keys.size).to.equal(1);
  });
});
