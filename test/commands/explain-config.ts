// Configurations and tokens for the explain command.
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
