import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { createLocalJWKSet, errors, jwtVerify } from 'jose';
import { audience, createTokens, issuer, type Tokens } from '../../../bench/speed/tokens.ts';

describe('the tokens of a bench', () => {
  let directory: string;
  let tokens: Tokens;

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'bench-tokens-'));
    tokens = await createTokens('ES256', directory);
  });
  after(() => rm(directory, { recursive: true }));

  const verify = (text: string) =>
    jwtVerify(text, createLocalJWKSet({ keys: [{ kty: 'EC', ...tokens.publicJwk }] }), { issuer, audience });
  const codeOf = (text: string): Promise<string> =>
    verify(text).then(
      () => 'good',
      error => (error instanceof errors.JOSEError ? error.code : String(error)),
    );

  it('are good, distinct and each for an account of its own', async () => {
    const good = await tokens.good(5, 3);
    const payloads = await Promise.all(good.map(async ({ text }) => (await verify(text)).payload.acc));
    expect(payloads).to.deep.equal(good.map(({ account }) => account));
    expect(new Set(payloads).size).to.equal(3);
  });

  it('are the same in the next run', async () => {
    const again = await createTokens('ES256', directory);
    expect(await again.good(0, 8)).to.deep.equal(await tokens.good(0, 8));
  });

  it('are fresh where they must never have been made', async () => {
    const [first, second] = [await tokens.fresh(2), await tokens.fresh(2)];
    expect(new Set([...first, ...second].map(({ text }) => text)).size).to.equal(4);
    expect(await Promise.all([...first, ...second].map(({ text }) => codeOf(text)))).to.deep.equal(
      Array.from({ length: 4 }, () => 'good'),
    );
  });

  for (const [name, code, make] of [
    ['forged', 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED', async () => tokens.forged(1)[0]],
    ['garbage', 'ERR_JWS_INVALID', async () => tokens.garbage(1)[0]],
    ['expired', 'ERR_JWT_EXPIRED', () => tokens.expired()],
    [
      'for another audience',
      'ERR_JWT_CLAIM_VALIDATION_FAILED',
      () => tokens.changed({ claims: { aud: 'https://other.example.com' } }),
    ],
  ] as const) {
    it(`are refused where they are ${name}, for that reason`, async () => {
      expect(await codeOf((await make())?.text ?? '')).to.equal(code);
    });
  }
});
