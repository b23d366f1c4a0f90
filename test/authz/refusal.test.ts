// The challenge that a refusal carries.
import { expect } from 'chai';
import { answerOf, type Reason } from '../../src/authz/refusal.ts';

describe('WWW-Authenticate challenge (RFC 6750 section 3)', () => {
  const rows: readonly (readonly [reason: Reason, challenge: string | undefined])[] = [
    ['token_missing', 'Bearer realm="account-authz"'],
    ['token_invalid', 'Bearer realm="account-authz", error="invalid_token"'],
    ['role_forbidden', 'Bearer realm="account-authz", error="insufficient_scope"'],
    ['account_mismatch', undefined],
  ];
  for (const [reason, challenge] of rows) {
    it(`is ${challenge ?? 'absent'} for ${reason}`, () => {
      expect(answerOf(reason).challenge).to.equal(challenge);
    });
  }
});
