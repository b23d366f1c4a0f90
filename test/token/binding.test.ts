// Tokens that are bound to a client certificate.
import { X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import { testCertificate } from '../../lab/test-certificate.ts';
import { now, token } from '../../lab/token.ts';
import { lab } from './verifier-lab.ts';

const [own, other] = [testCertificate(), testCertificate()].map(({ cert }) => cert.trim());
const thumbprint = Buffer.from(new X509Certificate(own ?? '').fingerprint256.replaceAll(':', ''), 'hex').toString(
  'base64url',
);
const bound = { cnf: { 'x5t#S256': thumbprint } };

describe('a token that is bound to a client certificate', () => {
  const none = 'cnf names a certificate, and the check shows none';
  const another = 'cnf names another certificate than that of the client';
  const rows: readonly (readonly [name: string, certificate: string, detail: string | undefined])[] = [
    ['its certificate', `${own}\n`, undefined],
    ['its certificate with every character encoded that may be', encodeURIComponent(`${own}\n`), undefined],
    ['its certificate before others of a chain', encodeURIComponent(`${own}\n${other}\n`), undefined],
    ['its certificate behind another', encodeURIComponent(`${other}\n${own}\n`), another],
    ['another certificate', encodeURIComponent(other ?? ''), another],
    ['the certificate cut short', encodeURIComponent((own ?? '').replace(/.{8}(?=\n-----END)/, '')), another],
    ['no certificate', '', none],
    ['a text that is none', 'x', none],
    ['a text with a broken escape', `%zz${own}`, none],
    ['the thumbprint in its place', thumbprint, none],
  ];
  for (const [name, certificate, detail] of rows) {
    it(`is ${detail === undefined ? 'accepted' : 'refused'} with ${name}, verified before or not`, async () => {
      const { verify } = await lab();
      const text = await token({ claims: bound });
      for (const cache of ['miss', 'hit']) {
        const found = await verify(text, certificate);
        expect(found.cache).to.equal(cache);
        if (detail === undefined) expect(found.outcome.kind).to.equal('claims');
        else expect(found.outcome).to.include({ reason: 'token_invalid', detail });
      }
    });
  }

  it('is judged for each of its senders, also while they wait for the same signature', async () => {
    const { verify } = await lab();
    const text = await token({ claims: bound });
    const senders = ['', own ?? '', other ?? ''];
    const kinds = await Promise.all(senders.map(async certificate => (await verify(text, certificate)).outcome.kind));
    expect(kinds).to.deep.equal(['refusal', 'claims', 'refusal']);
    const again = await Promise.all(senders.map(async certificate => (await verify(text, certificate)).outcome.kind));
    expect(again).to.deep.equal(kinds);
  });

  it('is refused for its certificate before its expiry', async () => {
    const { verify } = await lab();
    const text = await token({ claims: { ...bound, exp: now - 60 } });
    expect((await verify(text, other)).outcome).to.include({ reason: 'token_invalid' });
    expect((await verify(text, own)).outcome).to.include({ reason: 'token_expired' });
  });

  it('has its identity in the log although it is refused', async () => {
    const { verify } = await lab();
    expect((await verify(await token({ claims: bound }), '')).signed).to.include({ acc: 'acct1' });
  });
});
