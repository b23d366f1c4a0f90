import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { createSecretWatch, secrets } from './secrets.ts';
import { claims, token } from './token.ts';

describe('the search for secrets', () => {
  const places: readonly (readonly [name: string, shown: (token: string) => string])[] = [
    ['the whole token', text => `{"authorization":"Bearer ${text}"}`],
    ['its payload', text => text.split('.')[1] ?? ''],
    ['a part of its payload', text => (text.split('.')[1] ?? '').slice(30, 80)],
    ['its signature', text => `x=${text.split('.')[2]};`],
    ['a part of its signature', text => (text.split('.')[2] ?? '').slice(5, 60)],
    ['its header', text => text.split('.')[0] ?? ''],
  ];
  for (const [name, shown] of places) {
    it(`finds ${name} and does not repeat it`, async () => {
      const watch = createSecretWatch();
      const text = await token({ header: { note: randomBytes(30).toString('hex') } });
      watch.mint('token', text);
      watch.show('a planted leak', `before ${shown(text)} after`);
      const leaks = watch.leaks();
      expect(leaks).to.include('a token in: a planted leak');
      expect(leaks.join()).to.not.contain(shown(text).slice(0, 24));
    });
  }

  it('finds a private key in both alphabets of base64', () => {
    const watch = createSecretWatch();
    const key = Buffer.alloc(48, Buffer.from([0xfb, 0xef, 0xbe, 0xff, 1, 2, 3, 4, 5, 6, 7, 8, 9]));
    watch.mint('private key', key.toString('base64url'));
    watch.show('a file', key.toString('base64'));
    expect(watch.leaks()).to.deep.equal(['a private key in: a file']);
  });

  it('finds a token that was minted elsewhere', async () => {
    const watch = createSecretWatch();
    watch.show('the output of another process', await token());
    expect(watch.leaks()).to.deep.equal(['something like a token in: the output of another process']);
  });

  it('finds nothing in what may be shown', async () => {
    const watch = createSecretWatch();
    watch.mint('token', await token());
    watch.mint('token', `${'A'.repeat(60)}.e30.AA`);
    watch.show('log', `${JSON.stringify(claims())} ${'A'.repeat(80)} ${randomBytes(40).toString('hex')}`);
    expect(watch.leaks()).to.deep.equal([]);
  });

  it('knows the tokens and keys of this run', async () => {
    const before = secrets.counts().secrets;
    await token();
    expect(secrets.counts().secrets).to.be.greaterThan(before);
  });
});
