// The state machine of a key set, explored exhaustively to a small depth. `npm run key-states` goes as deep as a minute allows.
import { expect } from 'chai';
import { explore, smallLimits } from './explore.ts';

describe('every sequence of a few events around the limits of a key set', () => {
  for (const maxUnknownKids of [1, 2]) {
    it(`keeps the invariants if at most ${maxUnknownKids} unknown kid${maxUnknownKids === 1 ? ' is' : 's are'} remembered`, () => {
      const limits = { ...smallLimits, maxUnknownKids };
      const { states, levels } = explore({ limits, maxDepth: 5 });
      expect(levels).to.have.length(6);
      expect(states).to.be.above(1_000);
    });
  }

  const seconds = Number(process.env.KEY_STATES_SECONDS ?? 0);
  if (seconds > 0)
    it(`keeps the invariants as deep as ${seconds} s allow`, () => {
      const endMs = performance.now() + 1000 * seconds;
      const limits = { ...smallLimits, maxUnknownKids: 2 };
      const { states } = explore({ limits, maxDepth: 1000, isOver: () => performance.now() > endMs });
      expect(states).to.be.above(1_000);
    });
});
