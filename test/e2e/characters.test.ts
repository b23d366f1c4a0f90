// `characters: rfc3986` of a route behind real Envoys: ordinary file names reach the upstream as they were checked; what two servers could read
// as two paths does not, whether Envoy refuses or resolves it, or account-authz refuses it.
import { expect } from 'chai';
import { envoyVersions } from '../../lab/envoy.ts';
import { exchange, requestBytes } from '../../lab/raw-http.ts';
import { useRunning } from '../support/use-running.ts';
import { onlyRequestOf, reasonOf, useLab } from './lab.ts';

const settings = {
  routes: [
    { path: '/files/:account_id/*', characters: 'rfc3986' },
    { path: '/files/:account_id/admin', roles: ['root'] },
    { path: '/strict/:account_id/*' },
  ],
  roles: { root: ['*'], owner: ['*'] },
};

/** Names below /files/acct1/ and below /strict/acct1/. */
const ordinary = [
  ...'%C3%9Cbersicht%20(1).pdf a+b.txt a=b&c=d $metadata wow! a*b a%5Bb%5D a%22b%22 a%26b x%40y'.split(' '),
];

for (const version of envoyVersions) {
  describe(`characters: rfc3986 behind Envoy ${version}`, () => {
    const suite = useLab(settings);
    const { lab } = suite;
    const envoy = useRunning(() => suite.startRendered([], { version }));

    const ask = (path: string) => exchange(envoy.port, requestBytes('GET', path, [`Authorization: ${suite.owner}`]));

    for (const name of ordinary) {
      it(`serves ${name} as it was sent, and refuses it on a strict route`, async () => {
        expect(await ask(`/files/acct1/${name}?q=1`)).to.include({ status: 200 });
        expect(onlyRequestOf(lab.upstream).path).to.equal(`/files/acct1/${name}?q=1`);
        lab.upstream.clear();
        expect(reasonOf(await ask(`/strict/acct1/${name}`))).to.equal('request_invalid');
        expect(lab.upstream.requests).to.deep.equal([]);
      });
    }

    const refused = [
      ['a%2Fb', 400, undefined],
      ['a%5Cb', 400, undefined],
      ['..%2F..%2Ffiles%2Facct2', 400, undefined],
      ['%2e%2e/acct2/x', 403, 'account_mismatch'],
      ['%252e%252e/acct2/x', 400, 'request_invalid'],
      ['a%3Bb', 400, 'request_invalid'],
      ['a%0Ab', 400, 'request_invalid'],
      ['%FF', 400, 'request_invalid'],
      ['.%20.', 400, 'request_invalid'],
      ['ADMIN', 400, 'request_invalid'],
      ['%61dmin', 403, 'role_forbidden'],
    ] as const;
    for (const [name, status, reason] of refused) {
      it(`answers ${status} to ${name}`, async () => {
        const answer = await ask(`/files/acct1/${name}`);
        expect([answer.status, reasonOf(answer)]).to.deep.equal([status, reason]);
        expect(lab.upstream.requests).to.deep.equal([]);
      });
    }

    it('gives the check and the upstream one spelling of a dot', async () => {
      expect(await ask('/files/acct1/a%2epdf')).to.include({ status: 200 });
      expect(onlyRequestOf(lab.upstream).path).to.equal('/files/acct1/a.pdf');
    });
  });
}
