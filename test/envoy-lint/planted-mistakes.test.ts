// The lint reports each planted mistake under exactly its rules, and accepts each harmless change.
import { expect } from 'chai';
import { lintRules } from '../../src/envoy-lint/lint.ts';
import { afterCheck } from './mistakes/after-check.ts';
import { bypasses } from './mistakes/bypasses.ts';
import { checks } from './mistakes/checks.ts';
import { harmlessRoutes } from './mistakes/harmless-routes.ts';
import { harmlessSettings } from './mistakes/harmless-settings.ts';
import { openRoutes } from './mistakes/open-routes.ts';
import { requests } from './mistakes/requests.ts';
import { transport } from './mistakes/transport.ts';
import { rulesAfter } from './shipped.ts';

const mistakes = [...bypasses, ...openRoutes, ...requests, ...checks, ...transport, ...afterCheck];
const harmless = [...harmlessRoutes, ...harmlessSettings];

describe('lintBootstrap', () => {
  for (const [name, rule, edit] of mistakes) {
    it(`reports ${name} [${rule}]`, () => {
      expect(rulesAfter(edit)).to.deep.equal([rule].flat());
    });
  }

  for (const [name, edit] of harmless) {
    it(`accepts ${name}`, () => {
      expect(rulesAfter(edit)).to.deep.equal([]);
    });
  }

  it('has a planted mistake for every rule', () => {
    const planted = new Set(mistakes.flatMap(([, rule]) => rule));
    // Tested in test/config/commands.test.ts, since lintBootstrap takes parsed values.
    const ofFiles = ['unreadable-file'];
    expect([...planted, ...ofFiles].sort()).to.deep.equal(Object.keys(lintRules).sort());
  });
});
