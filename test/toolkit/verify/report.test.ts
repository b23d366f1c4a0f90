// What `verify` says that a difference means.
import { expect } from 'chai';
import type { PlannedRequest } from '../../../src/toolkit/verify/plan.ts';
import { meaningOf } from '../../../src/toolkit/verify/report.ts';
import type { AskedRequest } from '../../../src/toolkit/verify/verification.ts';

type Answer = Partial<AskedRequest['answer']>;

const rows: readonly (readonly [answer: Answer, meaning: string, planned?: Partial<PlannedRequest>])[] = [
  [{ status: 302 }, 'a redirect, which is not followed'],
  [{ status: 404 }, 'Envoy has no route for this path or this host'],
  [{ status: 403 }, 'whose call may fail'],
  [{ status: 503 }, 'whose call may fail'],
  [{ status: 401 }, 'whose call may fail'],
  [{}, 'the API answered: Envoy does not call account-authz for this route'],
  [{}, 'does not see the host', { kind: 'other account', place: { unseen: 'the host' } }],
  [{ status: 503, reason: 'keys_unavailable' }, 'no usable keys'],
  [{ status: 503, reason: 'internal' }, 'cannot decide'],
  [{ status: 404, reason: 'route_unknown' }, 'for a public path', { kind: 'public path' }],
  [{ status: 404, reason: 'route_unknown' }, 'another path or host'],
  [{ status: 401, reason: 'token_missing' }, 'the token does not reach account-authz', { authorization: 'Bearer x' }],
  [{ status: 403, reason: 'role_forbidden' }, 'another configuration', { authorization: 'Bearer x' }],
  [{}, 'may lead it to the protected API', { kind: 'below a public path' }],
  [{ isAdmin: true }, "Envoy's admin interface", { kind: 'admin of Envoy' }],
];

function asked(answer: Answer, planned: Partial<PlannedRequest> = {}): AskedRequest {
  return {
    planned: { kind: 'no token', name: 'GET /x', target: '/x', host: 'x', headers: [], ...planned },
    expected: { text: '', value: {}, isMet: () => false },
    answer: { kind: 'answer', status: 200, mediaType: '', ...answer },
    asExpected: false,
  };
}

describe('a difference that verify finds', () => {
  const refused = asked({ status: 401, reason: 'token_missing' });
  for (const [answer, meaning, planned] of rows) {
    it(`means for ${answer.status ?? 200} ${answer.reason ?? ''} to ${planned?.kind ?? 'no token'}: ${meaning}`, () =>
      expect(meaningOf(asked(answer, planned), { asked: [refused] })).to.contain(meaning));
  }

  it('means that Envoy does not call account-authz where that refused nothing', () =>
    expect(meaningOf(asked({}), { asked: [asked({})] })).to.contain('refused nothing at all'));
});
