import { type KeyObject, sign as signBytes } from 'node:crypto';
import { expect } from 'chai';
import { CompactSign, compactVerify, errors, exportJWK, generateKeyPair } from 'jose';
import { createSignatureCheck } from '../../src/keys/signature-check.ts';

const rsa = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'];
const others = ['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'];

interface Signed {
  readonly alg: string;
  readonly jwk: object;
  readonly text: string;
}

// Signed by jose, which has code of its own for all of it.
async function signedWith(alg: string): Promise<Signed> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  const text = await new CompactSign(Buffer.from('{"acc":"acct1"}')).setProtectedHeader({ alg }).sign(privateKey);
  return { alg, jwk: await exportJWK(publicKey), text };
}

function check({ jwk, alg }: Signed, text: string): boolean {
  const dot = text.lastIndexOf('.');
  return createSignatureCheck({ ...jwk }, alg)(
    Buffer.from(text.slice(0, dot)),
    Buffer.from(text.slice(dot + 1), 'base64url'),
  );
}

async function josesCheck({ jwk, alg }: Signed, text: string): Promise<boolean> {
  try {
    await compactVerify(text, { ...jwk, alg, kty: String(Reflect.get(jwk, 'kty')) });
    return true;
  } catch (error) {
    if (error instanceof errors.JOSEError) return false;
    throw error;
  }
}

/** The text with one bit of its signature turned, one signature longer or shorter, or none. */
function forgeries(text: string): readonly (readonly [name: string, text: string])[] {
  const dot = text.lastIndexOf('.');
  const signature = Buffer.from(text.slice(dot + 1), 'base64url');
  const withSignature = (bytes: Uint8Array): string =>
    `${text.slice(0, dot)}.${Buffer.from(bytes).toString('base64url')}`;
  const turned = (at: number): Buffer => Buffer.from(signature.map((byte, i) => (i === at ? byte ^ 1 : byte)));
  return [
    ['its first bit turned', withSignature(turned(0))],
    ['its last bit turned', withSignature(turned(signature.length - 1))],
    ['a byte too many', withSignature(Buffer.concat([signature, Buffer.alloc(1)]))],
    ['a byte before', withSignature(Buffer.concat([Buffer.alloc(1), signature]))],
    ['a byte too few', withSignature(signature.subarray(0, -1))],
    ['zeros', withSignature(Buffer.alloc(signature.length))],
    ['one byte', withSignature(Buffer.alloc(1))],
    ['the signature of another text', `${text.slice(0, dot - 1)}A.${text.slice(dot + 1)}`],
  ];
}

describe('signature check', () => {
  const signed = new Map<string, Signed>();
  before(async () => {
    for (const alg of [...rsa, ...others]) signed.set(alg, await signedWith(alg));
  });
  const of = (alg: string): Signed => {
    const found = signed.get(alg);
    if (found === undefined) throw new Error('not signed');
    return found;
  };

  for (const alg of [...rsa, ...others]) {
    it(`accepts what jose signed with ${alg}`, () => {
      expect(check(of(alg), of(alg).text)).to.equal(true);
    });
    it(`refuses with ${alg} each forgery that jose refuses`, async () => {
      const told = forgeries(of(alg).text).map(([name, text]) => [name, check(of(alg), text)]);
      const joses = await Promise.all(
        forgeries(of(alg).text).map(async ([name, text]) => [name, await josesCheck(of(alg), text)]),
      );
      expect(told).to.deep.equal(joses);
      expect(told.map(([, good]) => good)).to.not.include(true);
    });
  }

  for (const signer of rsa) {
    for (const alg of rsa.filter(name => name !== signer)) {
      it(`J-013 refuses with ${alg} what the same key signed with ${signer}`, () => {
        expect(check({ ...of(signer), alg }, of(signer).text)).to.equal(false);
      });
    }
  }

  it('J-013 refuses a salt of PSS that is not as long as the hash', async () => {
    const { publicKey, privateKey } = await generateKeyPair('PS256', { extractable: true });
    const { KeyObject } = await import('node:crypto');
    const key: KeyObject = KeyObject.from(privateKey as Parameters<typeof KeyObject.from>[0]);
    const jwk = await exportJWK(publicKey);
    const signedText = Buffer.from('a.b');
    const verdicts = [20, 32].map(saltLength =>
      createSignatureCheck({ ...jwk }, 'PS256')(
        signedText,
        signBytes('sha256', signedText, { key, padding: 6, saltLength }),
      ),
    );
    expect(verdicts).to.deep.equal([false, true]);
  });

  it('has no scheme for none and for secrets', () => {
    for (const alg of ['none', 'HS256', '', '__proto__', 'RS1']) {
      expect(() => createSignatureCheck({ ...of('RS256').jwk }, alg)).to.throw('an algorithm without a scheme');
    }
  });

  it('throws for what is no public key', () => {
    expect(() => createSignatureCheck({ kty: 'EC', crv: 'P-256', x: 'AQ', y: 'AQ' }, 'ES256')).to.throw();
  });
});
