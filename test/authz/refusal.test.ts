// The challenge that a refusal carries.
import { expect } from 'chai';
import { answerOf, type Reason } from '../../src/authz/refusal.ts';

describe('error of the challenge (RFC 6750 section 3)', () => {
  const rows: readonly (readonly [reason: Reason, challenge: string | undefined])[] = [
    ['token_missing', 'none'],
    ['token_invalid', 'invalid_token'],
    ['role_forbidden', 'insufficient_scope'],
    ['scope_forbidden', 'insufficient_scope'],
    ['account_required', undefined],
    ['account_mismatch', undefined],
  ];
  for (const [reason, challenge] of rows) {
    it(`is ${challenge ?? 'absent'} for ${reason}`, () => {
      expect(answerOf(reason).challenge).to.equal(challenge);
    });
  }
});
