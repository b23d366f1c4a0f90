// Configurations and questions for the explain command.
import { expect } from 'chai';
import { type ExplainLab, explanationOf, failedCheck, runExplain } from '../explain/explain-lab.ts';
import type { TokenParts } from '../support/token.ts';

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

/** Asks about a token of these parts: the detail of its failed check, which must be this one. */
export function failedDetails(lab: () => ExplainLab) {
  return async (parts: TokenParts, check: string, ...args: readonly string[]): Promise<string> => {
    const command = ['--config', lab().configFile, '--path', path, '--json', ...args];
    const { checks } = explanationOf(await runExplain(command, { input: await lab().token(parts) }));
    expect(failedCheck({ checks })).to.equal(check);
    return checks.find(({ name }) => name === check)?.detail ?? '';
  };
}
