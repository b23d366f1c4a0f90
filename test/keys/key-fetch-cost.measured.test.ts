// The memory and time that a hostile issuer can cost, measured in a process that does nothing else.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { programArguments } from '../../lab/compiled.ts';
import { secrets } from '../../lab/secrets.ts';
import { type IssuerFault, startTestIssuer, type TestIssuer } from '../../lab/test-issuer.ts';

interface Cost {
  readonly problem: string;
  readonly tookMs: number;
  readonly megabytes: number;
}

const timeoutMs = 500;
const maxMegabytes = 5;
const faults: readonly (readonly [string, IssuerFault, string])[] = [
  ['a body of 300 MB', { kind: 'huge' }, 'body too large'],
  ['a declared body of 300 MB', { kind: 'huge', declared: true }, 'body too large'],
  ['K-013 a gzip bomb of 300 MB', { kind: 'gzipBomb' }, 'body too large'],
  ['K-014 a body of a byte a second', { kind: 'drip' }, 'timed out'],
];

describe('cost of a key fetch', () => {
  const costs: Cost[] = [];

  before(async () => {
    const good = await startTestIssuer();
    const hostile: TestIssuer[] = [];
    for (const [, fault] of faults) {
      const issuer = await startTestIssuer({ keys: [{ kty: 'oct', k: 'x'.repeat(1_000) }] });
      issuer.fault(fault);
      hostile.push(issuer);
    }
    const urls = [good, ...hostile].map(({ jwksUrl }) => jwksUrl);
    const options = ['--expose-gc', ...programArguments('test/keys/fetch-cost.ts'), String(timeoutMs), ...urls];
    const { stdout } = await promisify(execFile)(process.execPath, options);
    secrets.show('command', stdout);
    for (const line of stdout.trim().split('\n')) costs.push(JSON.parse(line));
    await Promise.all([good, ...hostile].map(issuer => issuer.stop()));
  });

  faults.forEach(([name, , problem], i) => {
    it(`${name} fails with "${problem}" in less than ${maxMegabytes} MB and within timeoutSeconds`, () => {
      expect(costs[i]?.problem).to.equal(problem);
      expect(costs[i]?.megabytes).to.be.below(maxMegabytes);
      expect(costs[i]?.tookMs).to.be.below(timeoutMs + 3_000);
    });
  });
});
