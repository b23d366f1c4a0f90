import { request } from 'node:http';
import { expect } from 'chai';
import { type NotingUpstream, startNotingUpstream } from '../../../bench/resilience/noting-upstream.ts';

describe('the upstream that notes whose requests came', () => {
  let upstream: NotingUpstream;

  before(async () => {
    upstream = await startNotingUpstream();
  });
  after(() => upstream.stop());

  const rows: readonly (readonly [name: string, accounts: readonly string[], noted: string])[] = [
    ['one account', ['acme'], 'acme'],
    ['none, which is not an account', [], ''],
    ['more than one, none of which it hides', ['acme', 'globex'], 'acme, globex'],
  ];
  for (const [index, [name, accounts, noted]] of rows.entries()) {
    it(`notes ${name}`, async () => {
      const answered = await new Promise<number | undefined>((resolve, reject) => {
        request(`http://127.0.0.1:${upstream.port}/any/path?n=lane.${index}`, {
          headers: { 'x-auth-acc': [...accounts] },
        })
          .on('response', response => resolve(response.resume().statusCode))
          .on('error', reject)
          .end();
      });
      await upstream.told();
      expect([answered, upstream.accounts.get(`lane.${index}`)]).to.deep.equal([200, noted]);
    });
  }

  it('knows nothing of a request that has not come', () => {
    expect(upstream.accounts.get('lane.99')).to.equal(undefined);
  });
});
