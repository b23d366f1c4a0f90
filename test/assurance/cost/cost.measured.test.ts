// The short form of `npm run cost`: known expensive inputs and a short search, with bounds wide enough for a busy machine.
import { randomInt } from 'node:crypto';
import { expect } from 'chai';
import { allowedRequestMicroseconds } from './allowed-request.ts';
import { type CostTarget, maxMultiple } from './cost-target.ts';
import { describePattern, isRepeated, type Pattern, pattern, shortened } from './pattern.ts';
import { costOf, costsByLength, reportOf, search } from './search.ts';
import { createCostTargets } from './targets.ts';

const seed = Number(process.env.COST_SEED ?? randomInt(2 ** 31));
/** Of a target, with the known inputs and the fragments, which are always measured. */
const searchMilliseconds = 50;
/** Long enough for a run to be measured, short enough for thousands of them. */
const searchBytes = 8 * 1024;

/** Below it overhead dominates a ratio. */
const leastMicroseconds = 10;

/**
 * Quadruples the length twice: linear time grows 4 times, quadratic time 16 times. A single jump is a step, as when V8 changes an object's
 * representation at its thousandth member. A first look at the shorter two suffices for nearly all: one run is never less than the minimum of several.
 */
async function growsFaster(target: CostTarget, whole: Pattern): Promise<boolean> {
  if (!isRepeated(whole)) return false;
  const first = Math.max(await costOf(target, shortened(whole, 16), 3), leastMicroseconds);
  if ((await costOf(target, shortened(whole, 4), 1)) <= 8 * first) return false;
  const [most, middle, least] = await costsByLength(target, whole, 4);
  return middle > 8 * Math.max(least, leastMicroseconds) && most > 8 * middle;
}

async function fasterGrowing(target: CostTarget, milliseconds: number): Promise<string[]> {
  const found: string[] = [];
  for (const { pattern: each } of (await search(target, seed, milliseconds)).population)
    if (await growsFaster(target, each)) found.push(`${target.name}: ${describePattern(each)}`);
  return found;
}

function shortForm(target: CostTarget, maxQuickBytes = target.quickBytes): CostTarget {
  const maxBytes = Math.min(target.maxBytes, maxQuickBytes);
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
      for (const each of target.known) {
        const most = maxMultiple * allowed;
        if ((await costOf(target, each, 1)) > most && (await costOf(target, each, 8)) > most)
          found.push(`${target.name}: ${describePattern(each)}`);
      }
    }
    expect(found).to.deep.equal([]);
  });

  it('grows linearly for every known expensive input', async () => {
    const found: string[] = [];
    for (const target of targets.map(each => shortForm(each))) {
      for (const each of target.known) {
        if (await growsFaster(target, each)) found.push(`${target.name}: ${describePattern(each)}`);
      }
    }
    expect(found).to.deep.equal([]);
  });

  it('grows linearly for the inputs of a short search', async () => {
    const found: string[] = [];
    for (const target of targets)
      found.push(...(await fasterGrowing(shortForm(target, searchBytes), searchMilliseconds)));
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
    // Without mutants, of which some have no repeated part and so no growth.
    const report = await reportOf(quadratic, await search(quadratic, seed, 0));
    expect(report.growth?.exponent).to.be.above(1.5);
    expect(await fasterGrowing(quadratic, 0)).to.not.deep.equal([]);
  });
});
