// The readers of what an issuer answers, a key set or a discovery document, with their invariants.
import { createPublicKey } from 'node:crypto';
import { signingKey } from '../../../lab/signing-key.ts';
import { issuer } from '../../../lab/token.ts';
import { parseKeySet, type VerificationKey } from '../../../src/keys/jwks.ts';
import type { PublicJwk } from '../../../src/keys/key-material.ts';
import { parseDiscovery } from '../../../src/keys/key-source.ts';
import { keyUrlProblem } from '../../../src/text/key-url.ts';
import { inJson } from './shapes.ts';
import { must, type Target, words } from './target.ts';

const algorithms = ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA'];
const discoveryUrl = 'https://idp.test/.well-known/openid-configuration';

export async function jwksTarget(): Promise<Target> {
  const made = await Promise.all(
    ['RS256', 'ES256', 'ES384', 'EdDSA'].map(async alg => (await signingKey(`fuzz-${alg}`, alg)).publicJwk),
  );
  const [rsa = {}, ec = {}] = made;
  const n = Buffer.from(String(rsa.n), 'base64url');
  const sets: readonly (readonly object[])[] = [
    made,
    [{ ...rsa, n: n.subarray(0, 128).toString('base64url') }, ec],
    [
      { ...rsa, e: 'AQ' },
      { ...rsa, kid: 'three', e: 'Aw' },
    ],
    [
      { kty: 'oct', kid: 'k', k: 'c2VjcmV0' },
      { ...ec, d: 'AAAA' },
    ],
    [
      { ...ec, kid: 'one' },
      { ...ec, kid: 'two', use: 'enc' },
      { ...ec, kid: 'three', key_ops: ['sign'] },
    ],
    made.map(jwk => ({ ...jwk, kid: 'same' })),
    [],
  ];
  return {
    name: 'jwks',
    shapes: [inJson],
    seeds: sets.map(keys => Buffer.from(JSON.stringify({ keys }))),
    dictionary: words(
      ...['"kty":"oct"', '"k":"AA"', '"d":"AA"', '"kid":"k"', '"use":"enc"', '"alg":"HS256"', '"alg":"none"', 'P-521'],
      ...[
        '"crv":"secp256k1"',
        '"e":"AQ"',
        '"e":"AQAB"',
        '"__proto__":',
        'null',
        '{}',
        '[]',
        '\\u0000',
        '1e999',
        '{"keys":[',
      ],
    ),
    maxBytes: 16_384,
    shortRuns: 1000,
    async run(input) {
      const set = await parseKeySet(input, algorithms);
      if (set.kind === 'problem') return set.problem;
      must(set.keys.size > 0, 'a set without a key');
      for (const [kid, key] of set.keys) expectStrong(kid, key);
      for (const jwk of set.publicJwks) {
        expectStrongMaterial(jwk);
        for (const name of ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv']) {
          must(!Object.hasOwn(jwk, name), 'a private member is handed on');
        }
      }
      return 'keys';
    },
  };
}

function expectStrong(kid: string, key: VerificationKey): void {
  must(kid !== '' && kid.length <= 256 && key.kid === kid, 'a kid that is none');
  for (const alg of ['none', 'HS256', 'HS384', 'HS512', '', '__proto__', 'ES512']) {
    must(key.cryptoKeyFor(alg) === undefined, `a key for ${alg}`);
  }
  must(
    algorithms.some(alg => key.cryptoKeyFor(alg) !== undefined),
    'a key for nothing',
  );
}

function expectStrongMaterial(jwk: PublicJwk): void {
  const { modulusLength, publicExponent } = createPublicKey({ key: jwk, format: 'jwk' }).asymmetricKeyDetails ?? {};
  if (modulusLength === undefined || publicExponent === undefined) return;
  must(modulusLength >= 2048 && modulusLength <= 8192, `a modulus of ${modulusLength} bits`);
  must(publicExponent >= 65_537n && publicExponent % 2n === 1n, `the exponent ${publicExponent}`);
}

export function discoveryTarget(): Target {
  const jwks_uri = 'https://idp.test/jwks';
  const documents: readonly unknown[] = [
    { issuer, jwks_uri },
    { issuer, jwks_uri: 'http://127.0.0.1:8080/jwks' },
    { issuer, jwks_uri: 'http://idp.test/jwks' },
    { issuer: `${issuer}/`, jwks_uri },
    { issuer, jwks_uri: 'https://user:pass@idp.test/jwks#x' },
    [],
  ];
  return {
    name: 'discovery',
    shapes: [inJson],
    seeds: documents.map(document => Buffer.from(JSON.stringify(document))),
    dictionary: words(
      ...['"issuer":', '"jwks_uri":', '"__proto__":', 'http://', 'https://', 'file:///', 'data:,', 'javascript:', '@'],
      ...[
        'localhost',
        '127.0.0.1',
        '[::1]',
        '169.254.169.254',
        '\\u0000',
        '\\n',
        '%00',
        '..',
        '#',
        '?',
        issuer,
        jwks_uri,
      ],
    ),
    maxBytes: 4096,
    shortRuns: 3000,
    run(input) {
      const found = parseDiscovery(input, discoveryUrl, issuer);
      if (typeof found !== 'string') return Promise.resolve(found.problem);
      const metadata = JSON.parse(input.toString('utf8')) as Record<string, unknown>;
      must(metadata.issuer === issuer, 'the metadata of another issuer');
      must(metadata.jwks_uri === found, 'another address than the document says');
      must(keyUrlProblem(found) === undefined, 'an address that the configuration would not take');
      const { protocol, username, password } = new URL(found);
      must(protocol === 'https:', `a key set by ${protocol}`);
      must(username === '' && password === '', 'an address with credentials');
      return Promise.resolve('an address');
    },
  };
}
