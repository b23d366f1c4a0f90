// What the documents quote of a refusal is what the service says.
import { expect } from 'chai';
import { allPages } from '../../lab/document.ts';
import { answerOf, type Reason } from '../../src/authz/refusal.ts';
import { findRefusedCheck } from '../../src/offline/explain/refused-checks.ts';

const pages = allPages();

function quotes(pattern: RegExp): readonly { readonly path: string; readonly groups: readonly string[] }[] {
  return pages.flatMap(({ path, text }) =>
    Array.from(text.matchAll(pattern), ([, ...groups]) => ({ path, groups: groups.map(each => each ?? '') })),
  );
}

describe('refusals that the documents quote', () => {
  it('have a detail that the log knows', () => {
    // Of tokens: the pages of the providers. Of accounts: the failure modes.
    const reasons = ['token_invalid', 'account_mismatch', 'role_forbidden'] as const;
    const found = quotes(/detail\s+`([^`]+)`/g);
    expect(found).to.have.length.of.at.least(10);
    const unknown = found.filter(({ groups: [detail = ''] }) => !reasons.some(reason => isDefined(reason, detail)));
    expect(unknown).to.deep.equal([]);
  });

  it('have the body that the client gets', () => {
    const found = quotes(/(\{"type":"[^"…]+"[^}]+"request_id":[^}]+\})/g);
    expect(found).to.have.length.of.at.least(2);
    for (const { path, groups } of found) {
      const { type, title, status, reason } = JSON.parse(groups[0] ?? '');
      const answer = answerOf(reason as Reason);
      expect({ type, title, status }, path).to.deep.equal({
        type: `urn:account-authz:${reason}`,
        title: answer.title,
        status: answer.httpStatus,
      });
    }
  });
});

function isDefined(reason: Reason, detail: string): boolean {
  try {
    findRefusedCheck(reason, detail);
    return true;
  } catch {
    return false;
  }
}
