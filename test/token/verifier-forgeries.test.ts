// Tokens that the verifier refuses for their text: forged signatures, broken encodings, JSON that two parsers read in two ways.
import { createHmac, createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import { expect } from 'chai';
import { CompactEncrypt, importJWK, type JWK } from 'jose';
import { signingKey } from '../../lab/signing-key.ts';
import { base64url, type TokenParts, token } from '../../lab/token.ts';
import { countingKey, lab, payload } from './verifier-lab.ts';

describe('token verifier', () => {
  describe('invalid text', () => {
    const headers: readonly (readonly [name: string, header: string | Buffer])[] = [
      ['J-069 a byte order mark in the header', '\ufeff{"alg":"ES256","kid":"k1","typ":"JWT"}'],
      ['J-070 a duplicate alg', '{"alg":"none","kid":"k1","typ":"JWT","alg":"ES256"}'],
      ['J-071 a duplicate kid', '{"alg":"ES256","kid":"k2","typ":"JWT","kid":"k1"}'],
      ['J-073 a header that is not UTF-8', Buffer.from('7b22616c67223a2245533235ff227d', 'hex')],
      ['a header that is an array', '[]'],
    ];
    for (const [name, headerText] of headers) {
      it(`${name} is refused`, async () => {
        expect(await (await lab()).reasonOf(await token({ headerText }))).to.equal('token_invalid');
      });
    }

    const notUtf8 = Buffer.from([0xff, 0x22, 0x7d]);
    const payloads: readonly (readonly [name: string, edit: (good: string) => string | Buffer])[] = [
      ['C-009 an exp of NaN', good => good.replace(/"exp":\d+/, '"exp":NaN')],
      ['C-015 an infinite nbf', good => good.replace('{', '{"nbf":1e400,')],
      ['C-015 an nbf of minus infinity', good => good.replace('{', '{"nbf":-1e400,')],
      ['C-045 a duplicate acc', good => good.replace('{', '{"acc":"acct2",')],
      ['C-046 a duplicate exp', good => good.replace('{', '{"exp":1,')],
      ['C-047 a duplicate acc spelled with an escape', good => good.replace('{', '{"\\u0061cc":"acct2",')],
      ['C-049 an acc of __proto__', good => good.replace('"acc":"acct1"', '"__proto__":{"acc":"acct1"}')],
      ['C-059 a payload that is not UTF-8', good => Buffer.concat([Buffer.from(good).subarray(0, -2), notUtf8])],
      ['C-061 a comment in the payload', good => `${good}/* */`],
      ['C-061 a payload with single quotes', good => good.replaceAll('"', "'")],
      ['C-061 a second value in the payload', good => `${good}{}`],
      ['C-062 a payload that is an array', () => '[]'],
      ['C-062 a payload that is null', () => 'null'],
      ['C-062 a payload that is a number', () => '1'],
      ['C-062 an empty payload', () => ''],
      ['C-062 a payload that is a string', () => '"x"'],
    ];
    for (const [name, edit] of payloads) {
      it(`${name} is refused`, async () => {
        const payloadText = edit(await payload());
        expect(await (await lab()).reasonOf(await token({ payloadText }))).to.equal('token_invalid');
      });
    }
    const segments: readonly (readonly [name: string, parts: () => Promise<TokenParts>])[] = [
      ['J-061 white space in the payload segment', async () => ({ payloadSegment: ` ${base64url(await payload())}` })],
      [
        'J-063 a payload segment whose unused bits are set',
        async () => ({ payloadSegment: withUnusedBits(base64url(`${await payload()}${await padding()}`)) }),
      ],
      ['J-077 a payload that is itself a token', async () => ({ header: { cty: 'JWT' }, payloadText: await token() })],
    ];
    for (const [name, parts] of segments) {
      it(`${name} is refused`, async () => {
        expect(await (await lab()).reasonOf(await token(await parts()))).to.equal('token_invalid');
      });
    }

    const signatures: readonly (readonly [name: string, edit: (good: Buffer) => Buffer])[] = [
      ['J-023 a signature of zeros', () => Buffer.alloc(64)],
      ['J-025 a signature in DER', derOf],
      ['J-027 a signature of 96 bytes', good => Buffer.concat([good, Buffer.alloc(32)])],
      ['J-027 a signature of 63 bytes', good => good.subarray(1)],
      ['J-027 a signature of 65 bytes', good => Buffer.concat([good, Buffer.alloc(1)])],
      ['J-029 a flipped bit in the signature', flipped],
      ['J-030 an empty signature', () => Buffer.alloc(0)],
    ];
    for (const [name, edit] of signatures) {
      it(`${name} is refused`, async () => {
        const good = await token();
        const forged = `${unsigned(good)}.${base64url(edit(signatureOf(good)))}`;
        expect(await (await lab()).reasonOf(forged)).to.equal('token_invalid');
      });
    }

    const edits: [name: string, edit: (good: string) => string][] = [
      ['J-029 another payload', good => good.replace(/\.[^.]+\./, `.${base64url('{}')}.`)],
      [
        'J-029 another letter of the header',
        good => `${good.slice(0, 8)}${good[8] === 'A' ? 'B' : 'A'}${good.slice(9)}`,
      ],
      ['J-031 a text of two segments', good => unsigned(good)],
      ['J-033 a text of five segments', good => `${good}.a.b`],
      [
        'J-035 PBES2 with a count of 2^31 - 1',
        () => `${base64url('{"alg":"PBES2-HS256+A128KW","p2c":2147483647,"p2s":"AAAA"}')}.AA.AA.AA.AA`,
      ],
      ['J-064 a signature in the standard base64 alphabet', good => good.replace(/\.[^.]{2}(?=[^.]*$)/, '.+/')],
      ['J-062 a signature whose unused bits are set', good => withUnusedBits(good)],
      ['J-065 a signature of an impossible length', good => `${good}AAA`],
      ['J-066 a full-width letter', good => `${good.slice(0, -1)}\uff21`],
      ['H-030 the sign by which Envoy replaces an invalid byte', good => `${good.slice(0, 20)}!${good.slice(21)}`],
    ];
    for (const after of ['==', '\n', '\t', ' ', '\u200b', ' b'])
      edits.push([`J-058 J-059 J-066 H-015 ${JSON.stringify(after)} after the token`, good => good + after]);
    for (const before of [' ', '\ufeff'])
      edits.push([`J-061 J-066 H-005 ${JSON.stringify(before)} before the token`, good => before + good]);
    for (const text of ['', '.', '..', '...']) edits.push([`J-067 the text "${text}"`, () => text]);
    for (const [name, edit] of edits) {
      it(`${name} is refused`, async () => {
        expect(await (await lab()).reasonOf(edit(await token()))).to.equal('token_invalid');
      });
    }

    it('J-078 a token longer than maxBytes is refused, one of exactly maxBytes accepted', async () => {
      const good = await token();
      expect(await (await lab({ maxBytes: good.length - 1 })).reasonOf(good)).to.equal('token_invalid');
      expect(await (await lab({ maxBytes: good.length })).reasonOf(good)).to.equal('verified');
    });
    it('J-079 a token of 1 MB is refused synchronously, before any key is used', async () => {
      const at = await lab();
      const counter = await countingKey(at, 'k1');
      expect(await at.reasonOf(`${await token()}${'A'.repeat(1_000_000)}`)).to.equal('token_invalid');
      expect(at.verifyNow(`${await token()}${'A'.repeat(1_000_000)}`)).to.not.be.a('promise');
      expect(counter.uses).to.equal(0);
    });
    it('J-034 a JWE with an unsigned token, encrypted to the public key of the issuer, is refused', async () => {
      const key = await signingKey('r1', 'RS256');
      const { n = '', e = '' } = key.publicJwk;
      const publicKey = await importJWK({ kty: 'RSA', n, e, alg: 'RSA-OAEP-256' }, 'RSA-OAEP-256');
      const plain = `${base64url('{"alg":"none"}')}.${base64url(await payload())}.`;
      const jwe = await new CompactEncrypt(Buffer.from(plain))
        .setProtectedHeader({ alg: 'RSA-OAEP-256', enc: 'A128GCM', kid: 'r1', cty: 'JWT' })
        .encrypt(publicKey);
      expect(await (await lab()).reasonOf(jwe)).to.equal('token_invalid');
    });

    const hmacSecrets: readonly (readonly [name: string, secretOf: (key: KeyObject, jwk: JWK) => string | Buffer])[] = [
      ['J-015 the PEM without its last line break', key => spki(key).trimEnd()],
      ['J-015 the PEM after a space', key => ` ${spki(key)}`],
      ['J-015 the PEM after a control byte', key => `\x01${spki(key)}`],
      ['J-015 the PEM after a zero-width space', key => `\u200b${spki(key)}`],
      ['J-015 the PEM with CR LF', key => spki(key).replaceAll('\n', '\r\n')],
      ['J-015 the DER form', key => key.export({ type: 'spki', format: 'der' })],
      ['J-015 the PKCS#1 form', key => key.export({ type: 'pkcs1', format: 'pem' })],
      ['J-017 an empty text', () => ''],
      ['J-018 the base64url modulus', (_, { n = '' }) => n],
      ['J-018 the modulus in bytes', (_, { n = '' }) => Buffer.from(n, 'base64url')],
      ['J-019 the JWK', (_, jwk) => JSON.stringify(jwk)],
      ['J-014 J-019 the PEM', key => spki(key)],
    ];
    for (const [name, secretOf] of hmacSecrets) {
      it(`${name} used as HMAC secret is refused, even if algorithms listed HS256`, async () => {
        const { publicJwk } = await signingKey('r1', 'RS256');
        const secret = secretOf(createPublicKey({ key: publicJwk as JsonWebKey, format: 'jwk' }), publicJwk);
        const header = { alg: 'HS256', kid: 'r1', typ: 'JWT' };
        const input = `${base64url(JSON.stringify(header))}.${base64url(await payload())}`;
        const forged = `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`;
        expect(await (await lab()).reasonOf(forged)).to.equal('token_invalid');
        expect(await (await lab({ algorithms: ['HS256', 'RS256'] })).reasonOf(forged)).to.equal('token_invalid');
      });
    }
    it('J-018 the x coordinate of an EC key used as HMAC secret is refused', async () => {
      const { x = '' } = (await signingKey('k1')).publicJwk;
      const input = `${base64url('{"alg":"HS256","kid":"k1","typ":"JWT"}')}.${base64url(await payload())}`;
      for (const secret of [x, Buffer.from(x, 'base64url')]) {
        const forged = `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`;
        expect(await (await lab({ algorithms: ['HS256', 'ES256'] })).reasonOf(forged)).to.equal('token_invalid');
      }
    });
    it('J-085 an ES256 token signed by a key on another curve is refused', async () => {
      const key = await signingKey('k384', 'ES384');
      const at = await lab({ keys: [key], algorithms: ['ES256', 'ES384'] });
      expect(await at.reasonOf(await token({ key, header: { alg: 'ES256' } }))).to.equal('token_invalid');
    });
    it('C-069 ten thousand further claims are refused only if the token exceeds maxBytes', async () => {
      const furtherClaims = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`c${i}`, i]));
      const long = await token({ claims: furtherClaims });
      expect(await (await lab()).reasonOf(long)).to.equal('token_invalid');
      expect(await (await lab({ maxBytes: long.length })).reasonOf(long)).to.equal('verified');
    });
    it('J-026 the malleated twin of a cached token is verified by its own signature', async () => {
      const { verify } = await lab();
      const good = await token();
      await verify(good);
      const twin = `${unsigned(good)}.${base64url(malleated(signatureOf(good)))}`;
      const { outcome, cache } = await verify(twin);
      expect(outcome.kind).to.equal('claims');
      expect(cache).to.equal('miss');
    });
  });
});

// White space for a payload length that leaves unused bits in the last base64url character.
async function padding(): Promise<string> {
  return ' '.repeat((4 - ((await payload()).length % 3)) % 3);
}

function unsigned(text: string): string {
  return text.slice(0, text.lastIndexOf('.'));
}

function signatureOf(text: string): Buffer {
  return Buffer.from(text.slice(text.lastIndexOf('.') + 1), 'base64url');
}

function spki(key: KeyObject): string {
  return key.export({ type: 'spki', format: 'pem' }).toString();
}

// ECDSA-Sig-Value (RFC 3279 section 2.2.3).
function derOf(signature: Buffer): Buffer {
  const integer = (bytes: Buffer): Buffer => {
    const content = Buffer.concat([Buffer.from([0]), bytes]);
    return Buffer.concat([Buffer.from([2, content.length]), content]);
  };
  const both = Buffer.concat([integer(signature.subarray(0, 32)), integer(signature.subarray(32))]);
  return Buffer.concat([Buffer.from([0x30, both.length]), both]);
}

function flipped(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  copy[10] = (copy[10] ?? 0) ^ 1;
  return copy;
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

function withUnusedBits(text: string): string {
  const last = alphabet.indexOf(text.at(-1) ?? '');
  return text.slice(0, -1) + alphabet[last | 1];
}

const order = BigInt('0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551');

// ECDSA is malleable: (r, n - s) verifies as (r, s) does, and the order n of P-256 is public.
function malleated(signature: Buffer): Buffer {
  const s = BigInt(`0x${signature.subarray(32).toString('hex')}`);
  return Buffer.concat([signature.subarray(0, 32), Buffer.from((order - s).toString(16).padStart(64, '0'), 'hex')]);
}
