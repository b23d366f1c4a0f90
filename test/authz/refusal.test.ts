import { expect } from 'chai';
import { answerOf, type Reason } from '../../src/authz/refusal.ts';

describe('the challenge of a refusal (RFC 6750 section 3)', () => {
  const realm = 'Bearer realm="account-authz"';
  const challenges: Readonly<Record<Reason, string | undefined>> = {
    request_invalid: undefined,
    token_missing: realm,
    token_invalid: `${realm}, error="invalid_token"`,
    token_expired: `${realm}, error="invalid_token"`,
    role_forbidden: `${realm}, error="insufficient_scope"`,
    app_forbidden: undefined,
    account_mismatch: undefined,
    route_unknown: undefined,
    keys_unavailable: undefined,
    internal: undefined,
  };
  for (const reason of Object.keys(challenges) as Reason[]) {
    it(`is ${challenges[reason] ?? 'absent'} for ${reason}`, () => {
      expect(answerOf(reason).challenge).to.equal(challenges[reason]);
    });
  }
});
