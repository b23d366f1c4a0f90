// `npm run key-states -- [--seconds N] [--depth N]`: explores the state machine of a key set as deep as the time allows. Fails with the
// shortest sequence of steps that violates an invariant.
import { parseArgs } from 'node:util';
import { explore, smallLimits } from '../../test/assurance/key-states/explore.ts';

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '60' }, depth: { type: 'string', default: '1000' } },
});
const startedMs = performance.now();
const seconds = (): number => (performance.now() - startedMs) / 1000;
const { states, transitions, levels, isComplete } = explore({
  limits: { ...smallLimits, maxWaiters: 2, maxUnknownKids: 2 },
  maxDepth: Number(values.depth),
  isOver: () => seconds() > Number(values.seconds),
  onLevel: (depth, reached, tried) =>
    console.log(`depth ${depth}: ${reached} states, ${tried} transitions, ${seconds().toFixed(1)} s`),
});
const depth = levels.length - 1;
const partly = depth < Number(values.depth) ? `, and in a part of depth ${depth + 1}` : '';
const rest = isComplete ? ', and all reachable states are explored' : partly;
console.log(`${states} states, ${transitions} transitions: every invariant holds to depth ${depth}${rest}`);
