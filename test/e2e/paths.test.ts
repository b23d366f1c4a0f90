// Dangerous paths, sent unchanged over raw sockets. Envoy and the product share the work: some paths are
// normalized by Envoy first; only acct1's own paths may reach the upstream.
import { expect } from 'chai';
import { envoyVersions } from '../../lab/envoy.ts';
import { exchange, requestBytes } from '../../lab/raw-http.ts';
import { rawHttp2Exchange } from '../support/raw-http2.ts';
import { useRunning } from '../support/use-running.ts';
import { http2Fields, onlyRequestOf, reasonOf, useLab } from './lab.ts';

/** The outcome for the client: the path at the upstream, the product's reason, or the status of Envoy's own answer. */
type Outcome = { readonly upstream: string } | { readonly reason: string } | { readonly envoy: number };

const mine = '/api/subscriptions/acct1';
const other = '/api/subscriptions/acct2';
const reached: Outcome = { upstream: mine };
const mismatch: Outcome = { reason: 'account_mismatch' };
const invalid: Outcome = { reason: 'request_invalid' };
const unknown: Outcome = { reason: 'route_unknown' };
const refused: Outcome = { envoy: 400 };
const notRouted: Outcome = { envoy: 404 };

interface Row {
  readonly id: string;
  readonly target: string;
  readonly outcome: Outcome;
  /** Envoys before 1.39, which do not resolve dot segments with parameters (CVE-2026-73551). */
  readonly before139?: Outcome;
}

const rows: readonly Row[] = [
  { id: 'P-001', target: mine, outcome: reached },
  { id: 'P-002', target: other, outcome: mismatch },
  { id: 'P-003', target: `${mine}/items/9`, outcome: { upstream: `${mine}/items/9` } },
  { id: 'P-005', target: `${mine}/`, outcome: { upstream: `${mine}/` } },
  { id: 'P-005', target: `${other}/`, outcome: mismatch },
  { id: 'P-005', target: `${mine}//`, outcome: { upstream: `${mine}/` } },
  { id: 'P-006', target: '/api/subscriptionsX/acct1', outcome: notRouted },
  { id: 'P-006', target: '/api/subscriptions-old/acct1', outcome: notRouted },
  { id: 'P-007', target: '/API/subscriptions/acct1', outcome: notRouted },
  { id: 'P-007', target: '/api/Subscriptions/acct1', outcome: notRouted },
  { id: 'P-009', target: `${mine}/../acct2`, outcome: mismatch },
  { id: 'P-009', target: `${mine}/%2e%2e/acct2`, outcome: mismatch },
  { id: 'P-010', target: `${other}/../acct1`, outcome: reached },
  { id: 'P-011', target: '/api/subscriptions/./acct1', outcome: reached },
  { id: 'P-013', target: `${mine}/%252e%252e/acct2`, outcome: invalid },
  { id: 'P-014', target: `${mine}%2f..%2facct2`, outcome: refused },
  { id: 'P-015', target: `${mine}%5c..%5cacct2`, outcome: refused },
  { id: 'P-017', target: `${mine}%2Facct2`, outcome: refused },
  { id: 'P-017', target: `${mine}%252facct2`, outcome: invalid },
  { id: 'P-018', target: '//api/subscriptions/acct2', outcome: mismatch },
  { id: 'P-018', target: '/api//subscriptions/acct1', outcome: reached },
  { id: 'P-018', target: '/api/subscriptions//acct2', outcome: mismatch },
  { id: 'P-019', target: `//evil.test${mine}`, outcome: notRouted },
  { id: 'P-021', target: '/api/subscriptions/..;/acct2', outcome: notRouted, before139: invalid },
  { id: 'P-021', target: `${mine}/..;x/acct2`, outcome: mismatch, before139: invalid },
  { id: 'P-021', target: '/api/subscriptions/.;/acct1', outcome: reached, before139: invalid },
  { id: 'P-021', target: '/api/x/..;a=1/subscriptions/acct1', outcome: reached, before139: notRouted },
  { id: 'P-021', target: `${mine}/..%3b/acct2`, outcome: invalid },
  { id: 'P-022', target: '/api;v=1/subscriptions/acct1', outcome: notRouted },
  { id: 'P-022', target: '/api/subscriptions;x/acct1', outcome: notRouted },
  { id: 'P-023', target: `${mine}#/acct2`, outcome: refused },
  { id: 'P-023', target: `${mine}#frag`, outcome: refused },
  { id: 'P-025', target: `${mine}?account=acct2`, outcome: { upstream: `${mine}?account=acct2` } },
  {
    id: 'P-026',
    target: `${mine}?account=acct1&account=acct2`,
    outcome: { upstream: `${mine}?account=acct1&account=acct2` },
  },
  { id: 'P-027', target: '/api/subscriptions?account=acct1', outcome: unknown },
  { id: 'P-029', target: `${mine}%3Faccount=acct2`, outcome: invalid },
  { id: 'P-030', target: `${mine}%00`, outcome: refused },
  { id: 'P-030', target: `${mine}%00acct2`, outcome: refused },
  { id: 'P-030', target: `${mine}\0`, outcome: refused },
  { id: 'P-031', target: `${mine}%0d%0aX:%20y`, outcome: invalid },
  { id: 'P-031', target: `${mine}\tx`, outcome: refused },
  { id: 'P-031', target: `${mine} x`, outcome: refused },
  { id: 'P-033', target: '/api/subscriptions/acct%31', outcome: reached },
  { id: 'P-034', target: `${mine}%20`, outcome: invalid },
  { id: 'P-034', target: `${mine}+`, outcome: invalid },
  { id: 'P-035', target: `${mine}%`, outcome: invalid },
  { id: 'P-035', target: `${mine}%zz`, outcome: invalid },
  { id: 'P-035', target: `${mine}%u0061`, outcome: invalid },
  { id: 'P-037', target: `${mine}\xc0\xaf`, outcome: refused },
  { id: 'P-038', target: '/api/subscriptions/acct!1', outcome: invalid },
  { id: 'P-039', target: '/api/subscriptions/\xd0\xb0cct1', outcome: refused },
  { id: 'P-041', target: `http://evil.test${mine}`, outcome: reached },
  { id: 'P-041', target: `http://evil.test${other}`, outcome: mismatch },
  { id: 'P-041', target: `https://evil.test${other}`, outcome: { envoy: 403 } },
  { id: 'P-041', target: `ftp://evil.test${other}`, outcome: refused },
  { id: 'P-042', target: 'api/subscriptions/acct1', outcome: refused },
  { id: 'P-043', target: '*', outcome: refused },
  { id: 'P-045', target: '/', outcome: notRouted },
  { id: 'P-045', target: '?', outcome: refused },
  { id: 'P-045', target: '/?', outcome: notRouted },
  { id: 'P-045', target: '/..', outcome: notRouted },
  { id: 'P-046', target: `${mine}${other}`, outcome: { upstream: `${mine}${other}` } },
  { id: 'P-047', target: `/x${mine}`, outcome: notRouted },
  { id: 'P-049', target: '/api/subscriptions/*', outcome: invalid },
  { id: 'P-049', target: '/api/subscriptions/{account}', outcome: invalid },
  { id: 'P-049', target: '/api/subscriptions/me', outcome: mismatch },
  { id: 'P-050', target: '/api/subscriptions/.', outcome: unknown },
  { id: 'P-050', target: '/api/subscriptions/..', outcome: notRouted },
  { id: 'P-050', target: '/api/subscriptions/...', outcome: invalid },
  { id: 'P-051', target: `/api/subscriptions/${'a'.repeat(129)}`, outcome: invalid },
  { id: 'P-051', target: `/api/subscriptions/${'a'.repeat(4000)}`, outcome: invalid },
  { id: 'P-051', target: `${mine}?${'a'.repeat(9000)}`, outcome: invalid },
  { id: 'P-053', target: `${mine}${'/a'.repeat(5000)}`, outcome: invalid },
  { id: 'P-055', target: '/api/subscriptions/acct10', outcome: mismatch },
  { id: 'P-055', target: '/api/subscriptions/acct', outcome: mismatch },
  { id: 'P-057', target: '/api/subscriptions/%61cct1', outcome: reached },
  { id: 'P-063', target: '/pkg.Svc/M', outcome: notRouted },
  { id: 'P-065', target: `${mine}/;/x`, outcome: invalid },
  { id: 'P-066', target: `${mine}/..\\acct2`, outcome: mismatch },
  { id: 'P-066', target: '/api/subscriptions\\acct2', outcome: mismatch },
  { id: 'the way round', target: '/api/x/../subscriptions/acct2', outcome: mismatch },
  { id: 'out again', target: `${mine}/../../other/acct1`, outcome: notRouted },
];

const http2Rows: readonly Row[] = [
  { id: 'P-009', target: `${mine}/../acct2`, outcome: mismatch },
  { id: 'P-023', target: `${mine}#/acct2`, outcome: refused },
  { id: 'P-037', target: `${mine}\xff`, outcome: invalid },
  { id: 'P-038', target: '/api/subscriptions/acct!1', outcome: invalid },
];

/** Targets that Envoy answers by closing the connection. */
const http2Closed: readonly { readonly name: string; readonly paths: readonly string[] }[] = [
  { name: 'P-041 an absolute form', paths: [`http://evil.test${mine}`] },
  { name: 'P-042 no leading slash', paths: ['api/subscriptions/acct1'] },
  { name: 'P-043 an asterisk', paths: ['*'] },
  { name: 'an empty path', paths: [''] },
  { name: 'no path', paths: [] },
  { name: 'R-011 two paths', paths: [mine, other] },
];

describe('paths through Envoy', () => {
  const suite = useLab({ routes: [{ path: '/api/subscriptions/:account_id/*' }], account: undefined });
  const { lab } = suite;

  for (const version of envoyVersions) {
    describe(`Envoy ${version}`, () => {
      const envoy = useRunning(() => suite.start({ version }));

      const outcomeOf = ({ outcome, before139 = outcome }: Row): Outcome => (version < '1.39' ? before139 : outcome);

      for (const row of rows) {
        const outcome = outcomeOf(row);
        it(`${row.id} ${shown(row.target)}: ${described(outcome)}`, async () => {
          const answer = await exchange(envoy.port, requestBytes('GET', row.target, [`Authorization: ${suite.owner}`]));
          expect(seen(answer, suite)).to.deep.equal(outcome);
        });
      }

      for (const row of http2Rows) {
        it(`${row.id} ${shown(row.target)} over HTTP/2: ${described(outcomeOf(row))}`, async () => {
          const answer = await rawHttp2Exchange(envoy.port, [
            ...http2Fields(row.target),
            ['authorization', suite.owner],
          ]);
          expect(seen(answer, suite)).to.deep.equal(outcomeOf(row));
        });
      }

      it(`closes the HTTP/2 connection on an invalid path: ${http2Closed.map(({ name }) => name).join(', ')}`, async () => {
        // Concurrent, because Envoy takes a second to close each connection.
        const answers = await Promise.all(
          http2Closed.map(({ paths }) =>
            rawHttp2Exchange(envoy.port, [
              ...http2Fields('').slice(0, -1),
              ...paths.map((path): [string, string] => [':path', path]),
              ['authorization', suite.owner],
            ]),
          ),
        );
        expect(answers.map(({ status }) => status)).to.deep.equal(http2Closed.map(() => 0));
        expect(lab.upstream.requests).to.deep.equal([]);
      });
    });
  }
});

function seen(answer: { readonly status: number; readonly body: string }, { lab }: ReturnType<typeof useLab>): Outcome {
  if (answer.status === 200) return { upstream: onlyRequestOf(lab.upstream).path };
  expect(lab.upstream.requests).to.deep.equal([]);
  const reason = reasonOf(answer);
  return typeof reason === 'string' ? { reason } : { envoy: answer.status };
}

function described(outcome: Outcome): string {
  if ('upstream' in outcome) return `reaches the upstream as ${shown(outcome.upstream)}`;
  return 'reason' in outcome ? outcome.reason : `Envoy answers ${outcome.envoy}`;
}

function shown(target: string): string {
  const text = JSON.stringify(target).slice(1, -1);
  return text.length > 60 ? `${text.slice(0, 60)}… (${text.length})` : text;
}
