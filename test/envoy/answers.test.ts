// Pre-serialized answers: byte for byte equal to the response that the gRPC library serializes.
import { expect } from 'chai';
import fc from 'fast-check';
import { invariants } from '../../lab/invariants.ts';
import type { Decision } from '../../src/authz/authorize.ts';
import { type Reason, refusalAnswers } from '../../src/authz/refusal.ts';
import { createAnswers } from '../../src/envoy/answers.ts';
import { authorizationService } from '../../src/envoy/protocol.ts';
import { type ResponseContext, toCheckResponse } from '../../src/envoy/response.ts';
import { createIdentityHeaders } from '../../src/headers/headers.ts';
import { principal } from '../support/facts.ts';
import { runs } from '../support/foreign-bytes.ts';
import { refusalOf } from '../support/refusal.ts';

const identityHeaders = createIdentityHeaders('x-auth-', { email: 'email', plan: 'plan' });
const settings = { identityHeaders, removedHeaders: ['authorization'] };
const usual: ResponseContext = { requestId: 'r-1', receivedHeaders: [], principal: undefined };
const alice = principal({ uid: 'alice' });
const roleless = { ...alice, role: undefined };
const bob = principal({ uid: 'bob', acc: 'acct2' });

function serialized(decision: Decision, context: ResponseContext): Buffer {
  return authorizationService.Check.responseSerialize(toCheckResponse(settings, decision, context));
}

describe('answers', () => {
  const allow = (who: typeof alice, forwarded: readonly (string | undefined)[] = [undefined, undefined]): Decision => ({
    kind: 'allow',
    principal: who,
    forwarded,
  });
  const cases: readonly (readonly [name: string, decision: Decision, context: ResponseContext])[] = [
    ['an allow', allow(alice), { ...usual, principal: alice }],
    ['the same allow again', allow(alice), { ...usual, principal: alice, requestId: 'r-2' }],
    ['an allow without a principal in its context', allow(alice), usual],
    ['an allow of another principal', allow(bob), { ...usual, principal: bob }],
    ...[
      [undefined, 'pro'],
      ['pro', undefined],
      ['a@b.test', 'pro'],
      ['a@c.test', 'pro'],
      ['x'.repeat(256), 'AAaa'],
    ].map(forwarded => [`an allow that forwards ${forwarded.join()}`, allow(alice, forwarded), usual] as const),
    ['an allow with a forged header', allow(alice), { ...usual, principal: alice, receivedHeaders: ['x-auth-admin'] }],
    ['an allow after one with a forged header', allow(alice), { ...usual, principal: alice }],
    ['a refusal of a verified token', refusalOf('account_mismatch', 'why'), { ...usual, principal: alice }],
    ...[['ab', 'c'], ['a', 'bc'], ['c']].map(
      scopes => [`the scopes ${scopes.join(' ')}`, { ...refusalOf('scope_forbidden', 'why'), scopes }, usual] as const,
    ),
    ['a refusal of a principal without a role', refusalOf('role_forbidden', 'why'), { ...usual, principal: roleless }],
    ['a refusal of a principal with a role again', refusalOf('role_forbidden', 'why'), { ...usual, principal: alice }],
    ...Object.keys(refusalAnswers).flatMap(reason =>
      ['', 'a', 'r-1', 'r-2', '6f1c1a0e-3b5a-4b0e-9a57-000000000001', 'i'.repeat(128)].map(
        requestId =>
          [
            `${reason} with a request id of length ${requestId.length} (${requestId.slice(0, 3)}…)`,
            refusalOf(reason as Reason, 'why'),
            { ...usual, requestId },
          ] as const,
      ),
    ),
  ];
  const answers = createAnswers(settings);
  for (const [name, decision, context] of cases) {
    it(`equal the serialized response for ${name}`, () => {
      const bytes = answers.encode(decision, context);
      expect(bytes.equals(serialized(decision, context))).to.equal(true);
      invariants.hold(authorizationService.Check.responseDeserialize(bytes));
    });
  }

  // Few lengths, so that answers often share a template; all letters that placeholders use.
  it('I1 equal the serialized response for any texts and any earlier answers', () => {
    const text = fc.string({ unit: fc.constantFrom(...'ABCDEabcdez'), minLength: 1, maxLength: 4 });
    const who = fc
      .record({ uid: text, app: text, acc: text, role: text, iss: fc.constantFrom('A', 'a', 'https://é.test') })
      .map(principal);
    const made = fc.oneof(
      fc
        .tuple(who, fc.option(text, { nil: undefined }), text)
        .map(([each, ...forwarded]) => ({ decision: allow(each, forwarded), context: { ...usual, principal: each } })),
      fc
        .record({
          reason: fc.constantFrom(...(Object.keys(refusalAnswers) as Reason[])),
          requestId: text,
          principal: fc.option(who, { nil: undefined }),
        })
        .map(({ reason, ...context }) => ({ decision: refusalOf(reason, 'why'), context: { ...usual, ...context } })),
    );
    const shared = createAnswers(settings);
    fc.assert(
      fc.property(made, ({ decision, context }) => {
        expect(shared.encode(decision, context).equals(serialized(decision, context))).to.equal(true);
      }),
      runs(200),
    );
  });

  it('equal the serialized response beyond the limit of cached templates', () => {
    const many = createAnswers(settings);
    for (let length = 0; length < 1100; length += 1) {
      const one = principal({ uid: 'u'.repeat(1 + (length % 128)), role: 'r'.repeat(1 + Math.floor(length / 128)) });
      const context = { ...usual, principal: one };
      for (const each of [allow(one), { ...allow(one), forwarded: [] }])
        expect(many.encode(each, context).equals(serialized(each, context))).to.equal(true);
    }
  });

  it('G-025 throw for a decision that is neither an allow nor a refusal', () => {
    expect(() => answers.encode({ kind: 'perhaps' } as unknown as Decision, usual)).to.throw();
    expect(() => answers.encode({ kind: 'allow' } as unknown as Decision, usual)).to.throw();
  });

  it('do not change when a later answer is encoded', () => {
    const first = answers.encode(refusalOf('token_invalid', 'why'), { ...usual, requestId: 'r-1' });
    const before = Buffer.from(first);
    answers.encode(refusalOf('token_invalid', 'why'), { ...usual, requestId: 'r-2' });
    expect(first.equals(before)).to.equal(true);
  });
});
