// The lint reports each planted mistake under exactly its rules, and accepts each harmless change.
import { expect } from 'chai';
import { lintEnvoy, lintRules } from '../../../src/toolkit/lint/lint.ts';
import { holes } from './holes.ts';
import { honest } from './honest.ts';
import { afterCheck } from './mistakes/after-check.ts';
import { bypasses } from './mistakes/bypasses.ts';
import { checks } from './mistakes/checks.ts';
import { harmlessRoutes } from './mistakes/harmless-routes.ts';
import { harmlessSettings } from './mistakes/harmless-settings.ts';
import { openRoutes } from './mistakes/open-routes.ts';
import { requests } from './mistakes/requests.ts';
import { transport } from './mistakes/transport.ts';
import { ways } from './mistakes/ways.ts';
import { rulesAfter } from './shipped.ts';

const mistakes = [bypasses, openRoutes, requests, checks, transport, afterCheck, ways]
  .flatMap(each => Object.entries(each))
  .map(([rules, edits]) => ({ rules: rules.split(' + '), edits: Object.entries(edits) }));

describe('lintEnvoy', () => {
  for (const { rules, edits } of mistakes) {
    for (const [name, edit] of edits) {
      it(`reports ${name} [${rules}]`, () => {
        expect(rulesAfter(edit)).to.deep.equal(rules);
      });
    }
  }

  for (const [name, edit] of Object.entries({ ...harmlessRoutes, ...harmlessSettings })) {
    it(`accepts ${name}`, () => {
      expect(rulesAfter(edit)).to.deep.equal([]);
    });
  }

  it('knows what honest bootstraps have', () => {
    const { root, config } = honest();
    expect(lintEnvoy(root, config)).to.deep.equal({ problems: [], notJudged: [] });
  });

  it('has a planted mistake or a hole for every rule', () => {
    const bent = Object.values(holes).flatMap(all => Object.values(all).map(([says]) => says));
    // Tested with files, and with a configuration that has a cookie (token-places.test.ts).
    const planted = new Set([...mistakes.flatMap(({ rules }) => rules), ...bent, 'unreadable-file', 'cookie-origin']);
    planted.delete('not judged');
    expect([...planted].sort()).to.deep.equal(Object.keys(lintRules).sort());
  });
});
