// Decision → bytes of its CheckResponse. What repeats is serialized once: the allow of each verified token, and the refusal of each
// reason, in which only the request id differs from call to call.
import type { Decision } from '../authz/decision.ts';
import type { Principal } from '../authz/principal.ts';
import { type Reason, type Refusal, refusal } from '../authz/refusal.ts';
import { authorizationService, type CheckResponseMessage } from './protocol.ts';
import { type ResponseContext, type ResponseSettings, toCheckResponse } from './response.ts';

export interface Answers {
  /** Throws only on a fault; never for `internal` with a UUID, so that every fault has an answer. */
  encode(decision: Decision, context: ResponseContext): Buffer;
}

/** A serialized refusal, and where the request id stands in it. */
interface RefusalTemplate {
  readonly bytes: Buffer;
  readonly idStart: number;
}

const maxIdLength = 128;
const uuidLength = 36;

export function createAnswers(settings: ResponseSettings): Answers {
  // By the principal of a verified token: an answer lives exactly as long as the token is remembered. One character for each byte:
  // a small Buffer would keep the whole block alive that it was cut from (measured: 3.3 KB for an answer of 0.5 KB).
  const allows = new WeakMap<Principal, string>();
  const templates = new Map<Reason, (RefusalTemplate | undefined)[]>();

  function encodeAllow(decision: Decision & { readonly kind: 'allow' }, context: ResponseContext): Buffer {
    // A request with further headers under our prefix gets an answer of its own that removes them.
    const isUsual = settings.identityHeaders.shownToRemove(context.shownHeaders).length === 0;
    const known = isUsual ? allows.get(decision.principal) : undefined;
    if (known !== undefined) return Buffer.from(known, 'latin1');
    const bytes = serialize(toCheckResponse(settings, decision, context));
    if (isUsual) allows.set(decision.principal, bytes.toString('latin1'));
    return bytes;
  }

  function encodeRefusal(decision: Refusal, context: ResponseContext): Buffer {
    const { requestId, principal } = context;
    if (principal !== undefined || requestId.length > maxIdLength) {
      return serialize(toCheckResponse(settings, decision, context));
    }
    const { bytes, idStart } = templateOf(decision.reason, requestId.length);
    const answer = Buffer.from(bytes);
    answer.write(requestId, idStart, 'latin1');
    return answer;
  }

  // By the length of the id too, since the message holds lengths of everything around it.
  function templateOf(reason: Reason, idLength: number): RefusalTemplate {
    const ofReason = templates.get(reason) ?? [];
    templates.set(reason, ofReason);
    const known = ofReason[idLength];
    if (known !== undefined) return known;
    const context = { requestId: 'r'.repeat(idLength), shownHeaders: [], principal: undefined };
    const bytes = serialize(toCheckResponse(settings, refusal(reason, ''), context));
    const before = '"request_id":"';
    const template = { bytes, idStart: bytes.indexOf(before) + before.length };
    ofReason[idLength] = template;
    return template;
  }

  templateOf('internal', uuidLength);
  return {
    encode(decision, context) {
      if (decision.kind === 'allow') return encodeAllow(decision, context);
      return encodeRefusal(decision, context);
    },
  };
}

function serialize(response: CheckResponseMessage): Buffer {
  return authorizationService.Check.responseSerialize(response);
}
