// Parses a decision line of the log. The line is untrusted: parsed strictly, printed escaped.
import * as z from 'zod';
import { isAccount } from '../../authz/principal.ts';
import { answerOf, type Reason, refusalAnswers } from '../../authz/refusal.ts';
import { createIdentityHeaders } from '../../envoy/identity-headers.ts';
import { toCheckResponse } from '../../envoy/response.ts';
import { isJsonObject, parseStrictJson } from '../../json/strict-json.ts';
import { printable } from '../../text/printable.ts';
import { type Problem, problem } from '../../text/problem.ts';
import { type Explanation, explainAnswer } from './explanation.ts';

export interface DecisionLine {
  readonly kind: 'decision line';
  readonly explanation: Explanation;
  /** The known members of the line, in the order of the log. */
  readonly fields: readonly { readonly name: string; readonly value: string; readonly meaning: string }[];
}

/** The origin of each member. */
const meanings = {
  time: 'when account-authz wrote the line',
  requestId: "the client's x-request-id, or a generated one; the same in the answer and in Envoy's access log",
  decision: 'allow, deny, or unavailable: no decision was possible',
  reason: 'also in metrics, access log and answer',
  detail: 'the cause, in the log only',
  method: 'as the client sent it',
  route: 'of the routes that the path matches, the one with the most segments',
  uid: 'of the verified token',
  app: 'of the verified token',
  acc: 'the addressed account; without one, that of a token with exactly one',
  role: 'of the verified token; of several the one that decides, none if roles names none of them',
  scope: 'of the verified token: the one that decides',
  actor: 'of the verified token: who acts for uid',
  iss: 'of the verified token',
  jti: 'of the verified token',
  kid: 'from the header of the token, verified or not',
  cache: 'hit: verified before; miss: new or refused',
  durationMs: "from the decoded request to the answer, without the network; Envoy's own figure is authzMicroseconds",
  traceId: 'of the traceparent of the request',
} as const;

const maxTextLength = 2048;
const text = z.string().max(maxTextLength);
const line = z.object({
  msg: z.literal('check'),
  time: text.optional(),
  requestId: text,
  decision: z.enum(['allow', 'deny', 'unavailable']),
  reason: z.union([z.literal('allowed'), z.enum(Object.keys(refusalAnswers) as [Reason, ...Reason[]])]),
  detail: text.optional(),
  method: text,
  route: text.optional(),
  uid: text.optional(),
  app: text.optional(),
  acc: text
    .transform((acc, context) => {
      if (isAccount(acc, true)) return acc;
      context.addIssue({ code: 'custom', message: 'must be an account' });
      return z.NEVER;
    })
    .optional(),
  role: text.optional(),
  scope: text.optional(),
  actor: text.optional(),
  iss: text.optional(),
  jti: text.optional(),
  kid: text.optional(),
  cache: z.enum(['hit', 'miss']).optional(),
  durationMs: z.number().optional(),
  traceId: text.optional(),
});

const notOurs = 'standard input must be a decision line of account-authz: one JSON object with "msg":"check"';

export function parseDecisionLine(input: string): DecisionLine | Problem {
  // Collectors put the name of a pod or container before a line.
  const json = parseStrictJson(input.slice(Math.max(input.indexOf('{'), 0)).trim());
  if (json.kind === 'problem' || !isJsonObject(json.value)) return problem(notOurs);
  const parsed = line.safeParse(json.value);
  if (!parsed.success) return problem(notOurs);
  const { decision, reason, detail, method, route, uid, app, acc, role, scope, actor, iss, jti } = parsed.data;
  if (decision !== (reason === 'allowed' ? 'allow' : answerOf(reason).decision)) {
    return problem(
      'standard input must be a decision line of this version: its reason does not belong to its decision',
    );
  }
  const principal = iss === undefined ? undefined : { uid, app, acc, role, scope, actor, iss, jti };
  const answer = { decision, reason, ...(reason === 'allowed' ? passedOn : refusedWith(reason)) };
  const fields = Object.entries(meanings).flatMap(([name, meaning]) => {
    const value = parsed.data[name as keyof typeof meanings];
    return value === undefined ? [] : [{ name, value: printable(String(value), maxTextLength), meaning }];
  });
  const known = { method, route, principal, live: undefined };
  return { kind: 'decision line', explanation: explainAnswer(answer, detail, known), fields };
}

// The names of the identity headers are a setting, which the line does not tell.
const passedOn = { status: 200, headers: {} } as const;

function refusedWith(reason: Reason): { readonly status: number; readonly headers: Readonly<Record<string, string>> } {
  const settings = { identityHeaders: createIdentityHeaders('x-auth-'), forward: false };
  const context = { requestId: '', receivedHeaders: [], principal: undefined };
  const { denied_response: denied } = toCheckResponse(settings, { kind: 'refusal', reason, detail: '' }, context);
  if (denied === undefined) throw new Error('a refusal without an answer');
  return {
    status: denied.status.code,
    headers: Object.fromEntries(denied.headers.map(({ header }) => [header.key, header.value])),
  };
}
