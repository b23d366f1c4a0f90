// Tokens as libraries of other languages sign them. test/docs/configurations.test.ts has the tokens of providers.
import { KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { type CryptoKey, importJWK } from 'jose';
import { lab } from './verifier-lab.ts';

describe('tokens of JWT libraries', () => {
  const file = new URL('../fixtures/tokens/libraries.json', import.meta.url);
  const { keys, tokens }: Signed = JSON.parse(readFileSync(file, 'utf8'));

  for (const { library, alg, token } of tokens) {
    it(`of ${library}, are verified with ${alg}, and refused with another signature`, async () => {
      const at = await lab({ tokenTypes: ['JWT', ''] });
      for (const jwk of keys) {
        const cryptoKey = KeyObject.from((await importJWK(jwk, jwk.alg)) as CryptoKey);
        const cryptoKeyFor = (asked: string) => (asked === jwk.alg ? cryptoKey : undefined);
        at.keys.set(jwk.kid, { kid: jwk.kid, thumbprint: jwk.kid, cryptoKeyFor });
      }
      expect((await at.verify(token)).outcome).to.deep.include({ kind: 'claims' });
      const dot = token.lastIndexOf('.') + 1;
      const first = token[dot] === 'A' ? 'B' : 'A';
      expect(await at.reasonOf(token.slice(0, dot) + first + token.slice(dot + 1))).to.equal('token_invalid');
    });
  }
});

interface Signed {
  readonly keys: readonly { readonly kid: string; readonly alg: string }[];
  readonly tokens: readonly { readonly library: string; readonly alg: string; readonly token: string }[];
}
