// The verification of a signature by one key and one algorithm, for every supported algorithm.
import { constants, generateKeyPairSync, KeyObject, sign as signBytes } from 'node:crypto';
import { expect } from 'chai';
import { exportJWK, importJWK } from 'jose';
import { base64url } from '../../lab/token.ts';
import { isSignedBy } from '../../src/token/signature.ts';
import { postQuantum } from '../keys/parsed-keys.ts';

const rsaAlgorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'];
const curves: Readonly<Record<string, string>> = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' };
const algorithms = [...rsaAlgorithms, ...Object.keys(curves), 'EdDSA', 'Ed25519', ...postQuantum];

interface KeyPair {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
}

function keyPairOf(alg: string): KeyPair {
  const namedCurve = curves[alg];
  if (namedCurve !== undefined) return generateKeyPairSync('ec', { namedCurve });
  if (postQuantum.includes(alg)) return (generateKeyPairSync as (type: string) => KeyPair)(alg.toLowerCase());
  return alg.startsWith('Ed') ? generateKeyPairSync('ed25519') : generateKeyPairSync('rsa', { modulusLength: 2048 });
}

/** Signs with OpenSSL, independently of jose: RFC 7518 sections 3.3 to 3.5, RFC 8037 section 3.1, RFC 9964. */
function sign(
  alg: string,
  key: KeyObject,
  header: object = { alg },
  saltLength: number = constants.RSA_PSS_SALTLEN_DIGEST,
): string {
  const text = `${base64url(JSON.stringify(header))}.${base64url('{"acc":"acct1"}')}`;
  const hash = /^(?:Ed|ML)/.test(alg) ? null : `sha${alg.slice(2)}`;
  const padding = alg.startsWith('PS') ? constants.RSA_PKCS1_PSS_PADDING : constants.RSA_PKCS1_PADDING;
  const options = key.asymmetricKeyType === 'rsa' ? { padding, ...(alg.startsWith('PS') ? { saltLength } : {}) } : {};
  const signature = signBytes(hash, Buffer.from(text), { key, dsaEncoding: 'ieee-p1363', ...options });
  return `${text}.${signature.toString('base64url')}`;
}

async function cryptoKeyOf(publicKey: KeyObject, alg: string): Promise<KeyObject> {
  const imported = await importJWK(await exportJWK(publicKey), alg);
  if (imported instanceof Uint8Array) throw new Error('a symmetric key');
  return KeyObject.from(imported);
}

/** The JWS with a signature that is changed, longer, shorter or missing, and one with another payload. */
function forgeries(text: string): readonly (readonly [name: string, text: string])[] {
  const dot = text.lastIndexOf('.');
  const signature = Buffer.from(text.slice(dot + 1), 'base64url');
  const withSignature = (bytes: Uint8Array): string =>
    `${text.slice(0, dot)}.${Buffer.from(bytes).toString('base64url')}`;
  const withFlippedBit = (at: number): Buffer => Buffer.from(signature.map((byte, i) => (i === at ? byte ^ 1 : byte)));
  return [
    ['a flipped bit in its first byte', withSignature(withFlippedBit(0))],
    ['a flipped bit in its last byte', withSignature(withFlippedBit(signature.length - 1))],
    ['a zero byte after it', withSignature(Buffer.concat([signature, Buffer.alloc(1)]))],
    ['a zero byte before it', withSignature(Buffer.concat([Buffer.alloc(1), signature]))],
    ['its last byte missing', withSignature(signature.subarray(0, -1))],
    ['zeros', withSignature(Buffer.alloc(signature.length))],
    ['one byte', withSignature(Buffer.alloc(1))],
    ['no signature', `${text.slice(0, dot)}.`],
    ['another payload', `${text.slice(0, dot - 1)}A.${text.slice(dot + 1)}`],
  ];
}

describe('isSignedBy', () => {
  const [first, second] = [new Map<string, KeyPair>(), new Map<string, KeyPair>()];
  before(() => {
    // The algorithms of RSA share a pair: a new one takes a quarter of a second.
    for (const pairs of [first, second]) {
      const rsa = keyPairOf('RS256');
      for (const alg of algorithms) pairs.set(alg, rsaAlgorithms.includes(alg) ? rsa : keyPairOf(alg));
    }
  });
  const pairOf = (alg: string, pairs = first): KeyPair => pairs.get(alg) ?? expect.fail(alg);

  for (const alg of algorithms) {
    it(`accepts an ${alg} signature by OpenSSL`, async () => {
      const { publicKey, privateKey } = pairOf(alg);
      expect(await isSignedBy(await cryptoKeyOf(publicKey, alg), alg, sign(alg, privateKey))).to.equal(true);
    });
    it(`refuses forged ${alg} signatures`, async () => {
      const { publicKey, privateKey } = pairOf(alg);
      const key = await cryptoKeyOf(publicKey, alg);
      for (const [name, text] of forgeries(sign(alg, privateKey)))
        expect(await isSignedBy(key, alg, text), name).to.equal(false);
      const other = await cryptoKeyOf(pairOf(alg, second).publicKey, alg);
      expect(await isSignedBy(other, alg, sign(alg, privateKey)), 'by another key').to.equal(false);
    });
  }

  for (const alg of rsaAlgorithms) {
    it(`J-013 refuses for ${alg} a signature by the same key with another algorithm, whatever the header says`, async () => {
      const { publicKey, privateKey } = pairOf('RS256');
      const key = await cryptoKeyOf(publicKey, alg);
      for (const signer of rsaAlgorithms.filter(name => name !== alg)) {
        expect(await isSignedBy(key, alg, sign(signer, privateKey, { alg })), signer).to.equal(false);
        expect(await isSignedBy(key, alg, sign(signer, privateKey, { alg: signer })), signer).to.equal(false);
      }
    });
  }

  it('J-013 refuses a PSS signature whose salt is not as long as the hash', async () => {
    const { publicKey, privateKey } = pairOf('RS256');
    const key = await cryptoKeyOf(publicKey, 'PS256');
    const results = [20, 32].map(saltLength =>
      isSignedBy(key, 'PS256', sign('PS256', privateKey, { alg: 'PS256' }, saltLength)),
    );
    expect(await Promise.all(results)).to.deep.equal([false, true]);
  });

  it('refuses an ECDSA signature in DER', async () => {
    const pair = pairOf('ES256');
    const [header = '', payload = ''] = sign('ES256', pair.privateKey).split('.');
    const der = signBytes('sha256', Buffer.from(`${header}.${payload}`), pair.privateKey).toString('base64url');
    expect(
      await isSignedBy(await cryptoKeyOf(pair.publicKey, 'ES256'), 'ES256', `${header}.${payload}.${der}`),
    ).to.equal(false);
  });
});
