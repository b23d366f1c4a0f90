// Builds the CheckResponse of a decision; no other file builds one. The defaults of the wire allow (an empty message is an allow, a text as
// code is encoded as 0), so this code writes every field and takes every code as a number from the table of refusals.
import type { Decision } from '../authz/authorize.ts';
import { allowKey, type Principal, upstreamFields } from '../authz/principal.ts';
import { answerOf, type Challenge, type ChallengeHint, type Refusal } from '../authz/refusal.ts';
import type { IdentityHeaders } from '../headers/headers.ts';
import { appendAction, type CheckResponseMessage, type HeaderValueOption, type StructMessage } from './protocol.ts';

/** Value of `retry-after` in a 503. */
const retryAfterSeconds = 5;

const okCode = 0;
const noHint: ChallengeHint = { scopes: [], isOfResource: false };

export interface ResponseSettings {
  readonly identityHeaders: IdentityHeaders;
  /** Other headers of a client that an allow removes, in lower case: the token among them. */
  readonly removedHeaders: readonly string[];
  /** URL of the metadata of the protected resource (RFC 9728), which the challenges of its routes name; none by default. */
  readonly resourceMetadata?: string | undefined;
}

/** What a response depends on besides the decision. */
export interface ResponseContext {
  readonly requestId: string;
  /** Names of the request headers that Envoy sent. */
  readonly receivedHeaders: Iterable<string>;
  /** Set once the token is verified, even if the request is refused later. */
  readonly principal: Principal | undefined;
}

export function toCheckResponse(
  settings: ResponseSettings,
  decision: Decision,
  context: ResponseContext,
): CheckResponseMessage {
  // Fails closed: a value that is neither has no row in the table of refusals, so `refused` throws.
  if (decision.kind === 'allow') return allowed(settings, decision, context.receivedHeaders);
  return refused(settings, decision, context);
}

function allowed(
  settings: ResponseSettings,
  { principal, forwarded, rewrites = [] }: Extract<Decision, { kind: 'allow' }>,
  received: Iterable<string>,
): CheckResponseMessage {
  const { identityHeaders, removedHeaders } = settings;
  const headers: HeaderValueOption[] = [];
  const absent: string[] = [];
  const set = (name: string, value: string | undefined): void => {
    if (value === undefined) absent.push(name);
    else headers.push(overwrite(name, value));
  };
  for (const [field, name] of identityHeaders.names) set(name, principal[field]);
  for (const [i, name] of identityHeaders.forwarded.entries()) set(name, forwarded[i]);
  for (const [name, value] of rewrites) set(name, value === '' ? undefined : value);
  return {
    status: { code: okCode },
    ok_response: {
      headers,
      // Envoy removes after it sets, so this list must not contain a header that is set.
      headers_to_remove: [
        ...absent,
        ...identityHeaders.lookAlikes,
        ...removedHeaders,
        ...identityHeaders.strayNames(received),
      ],
    },
    dynamic_metadata: metadata({ decision: 'allow', reason: 'allowed', [allowKey]: 'allow' }, principal),
  };
}

function refused(
  { resourceMetadata }: ResponseSettings,
  { reason, hint = noHint }: Refusal,
  { requestId, principal }: ResponseContext,
): CheckResponseMessage {
  const { decision, httpStatus: status, rpcCode, title, challenge } = answerOf(reason);
  const headers = [overwrite('content-type', 'application/problem+json'), overwrite('cache-control', 'no-store')];
  // Where no scope would do, asking for one would be in vain.
  if (challenge !== undefined && (challenge !== 'insufficient_scope' || hint.scopes.length > 0))
    headers.push(overwrite('www-authenticate', toChallenge(challenge, hint, resourceMetadata)));
  if (decision === 'unavailable') headers.push(overwrite('retry-after', String(retryAfterSeconds)));
  return {
    status: { code: rpcCode },
    denied_response: {
      status: { code: status },
      headers,
      // RFC 9457. The body does not depend on the token, nor on what is wrong with it.
      body: JSON.stringify({
        type: `urn:account-authz:${reason}`,
        title,
        status,
        reason,
        request_id: requestId,
      }),
    },
    dynamic_metadata: metadata({ decision, reason }, principal),
  };
}

// RFC 6750 section 3 and RFC 9728 section 5.1. All its texts are of the configuration, and their grammars leave nothing to escape.
function toChallenge(
  error: Challenge,
  { scopes, isOfResource }: ChallengeHint,
  resourceMetadata: string | undefined,
): string {
  return [
    'Bearer realm="account-authz"',
    ...(error === 'none' ? [] : [`error="${error}"`]),
    ...(scopes.length === 0 ? [] : [`scope="${scopes.join(' ')}"`]),
    ...(resourceMetadata === undefined || !isOfResource ? [] : [`resource_metadata="${resourceMetadata}"`]),
  ].join(', ');
}

// Sets both fields: Envoy 1.37 to 1.38 development builds read one, other versions the other (envoyproxy/envoy#43310).
function overwrite(key: string, value: string): HeaderValueOption {
  return { header: { key, value }, append: { value: false }, append_action: appendAction.overwriteIfExistsOrAdd };
}

function metadata(words: Readonly<Record<string, string>>, principal: Principal | undefined): StructMessage {
  const fields: Record<string, { stringValue: string }> = {};
  for (const [name, word] of Object.entries(words)) fields[name] = { stringValue: word };
  for (const field of upstreamFields) {
    const value = principal?.[field];
    if (value !== undefined) fields[field] = { stringValue: value };
  }
  return { fields };
}
