// The lab, configurations and questions for the tests of the explain command.
import { expect } from 'chai';
import type { Outcome } from '../../lab/command.ts';
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
export function fullConfig(changes: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    routes: [{ path: '/api/subscriptions/accounts/:account_id/*' }],
    account: { headers: ['x-account-id'], query: ['account_id'] },
    ...changes,
  };
}

export interface ExplainSuite {
  readonly lab: ExplainLab;
  /** A valid one. */
  readonly token: string;
  /** The outcome of explain for the path of this module. */
  run(args: readonly string[], input?: string | Buffer): Promise<Outcome>;
  /** The detail of the failed check, which must be this one, for a token of these parts. */
  detailOf(parts: TokenParts, check: string, ...args: readonly string[]): Promise<string>;
}

/** Starts the lab before the tests of this suite and stops it after them. */
export function useExplainLab(): ExplainSuite {
  let lab: ExplainLab;
  let token: string;
  before(async () => {
    lab = await startExplainLab();
    token = await lab.token();
  });
  after(() => lab.stop());
  const run = (args: readonly string[], input: string | Buffer = token): Promise<Outcome> =>
    runExplain(['--config', lab.configFile, '--path', path, ...args], { input });
  return {
    get lab() {
      return lab;
    },
    get token() {
      return token;
    },
    run,
    async detailOf(parts, check, ...args) {
      const { checks } = explanationOf(await run(['--json', ...args], await lab.token(parts)));
      expect(failedCheck({ checks })).to.equal(check);
      return checks.find(({ name }) => name === check)?.detail ?? '';
    },
  };
}
