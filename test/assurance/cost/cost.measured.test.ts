// The short form of `npm run cost`: known expensive inputs and a short search, with bounds wide enough for a busy machine.
import { randomInt } from 'node:crypto';
import { expect } from 'chai';
import { allowedRequestMicroseconds } from './allowed-request.ts';
import { type CostTarget, maxMultiple } from './cost-target.ts';
import { describePattern, isRepeated, type Pattern, pattern, shortened } from './pattern.ts';
import { costOf, type SearchReport, startSearch } from './search.ts';
import { createCostTargets } from './targets.ts';

const seed = Number(process.env.COST_SEED ?? randomInt(2 ** 31));
const searchMilliseconds = 100;

/**
 * Quadruples the length twice: linear time grows 4 times, quadratic time 16 times. A single jump is a step, as when V8 changes an object's
 * representation at its thousandth member. Below some microseconds overhead dominates.
 */
async function growsFaster(target: CostTarget, whole: Pattern): Promise<boolean> {
  if (!isRepeated(whole)) return false;
  const least = Math.max(await costOf(target, shortened(whole, 16), 5), 10);
  const middle = await costOf(target, shortened(whole, 4), 5);
  return middle > 8 * least && (await costOf(target, whole, 3)) > 8 * middle;
}

/** The dearest input may be one without a repeated part, which has no growth; the one with the greatest growth has. */
async function fasterGrowing(target: CostTarget, { dearest, growth }: SearchReport): Promise<string[]> {
  const found: string[] = [];
  for (const each of [...dearest, ...(growth === undefined ? [] : [growth])]) {
    if (await growsFaster(target, each.pattern)) found.push(`${target.name}: ${describePattern(each.pattern)}`);
  }
  return found;
}

function shortForm(target: CostTarget): CostTarget {
  const maxBytes = Math.min(target.maxBytes, target.quickBytes);
  return { ...target, maxBytes, known: target.known.map(each => ({ ...each, bytes: Math.min(each.bytes, maxBytes) })) };
}

describe(`the cost of foreign bytes with COST_SEED=${seed}`, function () {
  this.timeout(300_000);
  let targets: readonly CostTarget[];
  let allowed: number;
  before(async () => {
    const created = await createCostTargets();
    targets = created.targets;
    allowed = await allowedRequestMicroseconds(created.check);
  });

  it('is at most 50 allowed requests for every known expensive input', async () => {
    const found: string[] = [];
    for (const target of targets) {
      const most = maxMultiple * allowed;
      for (const each of target.known) {
        if ((await costOf(target, each, 2)) > most && (await costOf(target, each, 8)) > most) {
          found.push(`${target.name}: ${describePattern(each)}`);
        }
      }
    }
    expect(found).to.deep.equal([]);
  });

  it('grows linearly for every known expensive input', async () => {
    const found: string[] = [];
    for (const target of targets.map(shortForm)) {
      for (const each of target.known) {
        if (await growsFaster(target, each)) found.push(`${target.name}: ${describePattern(each)}`);
      }
    }
    expect(found).to.deep.equal([]);
  });

  it('grows linearly for the inputs of a short search', async () => {
    const found: string[] = [];
    for (const target of targets.map(shortForm)) {
      found.push(...(await fasterGrowing(target, await startSearch(target, seed).advance(searchMilliseconds))));
    }
    expect(found).to.deep.equal([]);
  });

  it('is detected as quadratic for a regular expression with a quadratic trailing run', async () => {
    const quadratic: CostTarget = {
      name: 'quadratic',
      maxBytes: 4096,
      quickBytes: 4096,
      fragments: [Buffer.from('a'), Buffer.from(' ')],
      shapes: [input => input],
      known: [pattern(4096, '', 'a')],
      load: input => () => input.toString('latin1').replace(/ +$/, ''),
    };
    const report = await startSearch(quadratic, seed).advance(searchMilliseconds);
    expect(report.growth?.exponent).to.be.above(1.5);
    expect(await fasterGrowing(quadratic, report)).to.not.deep.equal([]);
  });
});
