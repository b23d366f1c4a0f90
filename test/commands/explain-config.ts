// The lab, configurations and questions for the tests of the explain command.
import { expect } from 'chai';
import type { Outcome } from '../../lab/command.ts';
import { writeFixture } from '../../lab/config-file.ts';
import { serviceConfig } from '../../lab/service.ts';
import type { TestIssuer } from '../../lab/test-issuer.ts';
import type { TokenParts } from '../../lab/token.ts';
import {
  type ExplainLab,
  explanationOf,
  failedCheck,
  runExplain,
  startExplainLab,
} from '../toolkit/explain/explain-lab.ts';

export const path = '/api/subscriptions/accounts/acct1';

export const controlSequence = '\u001b[';

// Without empty lists, so that the effective settings are themselves a valid configuration.
function fullConfig(changes: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    routes: [{ path: '/api/subscriptions/accounts/:account_id/*' }],
    account: { headers: ['x-account-id'], query: ['account_id'] },
    ...changes,
  };
}

/** Starts the lab before the tests of this suite and stops it after them. */
export function useExplainLab() {
  let lab: ExplainLab;
  let token: string;
  before(async () => {
    lab = await startExplainLab();
    token = await lab.token();
  });
  after(() => lab.stop());
  /** The outcome of explain for the path of this module. */
  const run = (args: readonly string[], input: string | Buffer = token): Promise<Outcome> =>
    runExplain(['--config', lab.configFile, '--path', path, ...args], { input });
  /** The outcome of explain with a configuration of its own, with the issuer of the lab or another. */
  const runWith = (
    changes: Readonly<Record<string, unknown>>,
    args: readonly string[] = [],
    { issuer = lab.issuer, input = token }: { readonly issuer?: TestIssuer; readonly input?: string } = {},
  ): Promise<Outcome> => {
    const file = writeFixture('explain-with.json', serviceConfig(issuer, fullConfig(changes)));
    return runExplain(['--config', file, '--path', path, ...args], { input });
  };
  return {
    get lab() {
      return lab;
    },
    /** A valid one. */
    get token() {
      return token;
    },
    run,
    runWith,
    /** The detail of the failed check, which must be this one, for a token of these parts. */
    async detailOf(parts: TokenParts, check: string, ...args: readonly string[]) {
      const { checks } = explanationOf(await run(['--json', ...args], await lab.token(parts)));
      expect(failedCheck({ checks })).to.equal(check);
      return checks.find(({ name }) => name === check)?.detail ?? '';
    },
  };
}
