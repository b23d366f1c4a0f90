// Decision → bytes of its CheckResponse. Answers that differ only in their texts are serialized once: a template for each reason and
// each length of the texts, into which an answer writes its own. To serialize each costs ten times as much (docs/performance.md).
import type { Decision } from '../authz/decision.ts';
import type { Account, Principal } from '../authz/principal.ts';
import { refusal } from '../authz/refusal.ts';
import { authorizationService } from './proto-files.ts';
import { type ResponseContext, type ResponseSettings, toCheckResponse } from './response.ts';

export interface Answers {
  /** Throws only on a fault; never for `internal` with a UUID, so that every fault has an answer. */
  encode(decision: Decision, context: ResponseContext): Buffer;
}

/** The texts that differ from call to call, all of visible ASCII; empty where the answer has none. */
type Texts = readonly [requestId: string, uid: string, app: string, acc: string, role: string];

interface Template {
  readonly bytes: Buffer;
  readonly holes: readonly Hole[];
}

/** Where a text stands in the bytes. */
interface Hole {
  readonly start: number;
  /** In `Texts`. */
  readonly text: number;
}

// 0.6 KB each. Beyond it all are made anew: the lengths of verified names and accounts are few.
const maxTemplates = 1000;

const uuid = '00000000-0000-0000-0000-000000000000';

export function createAnswers(settings: ResponseSettings): Answers {
  const templates = new Map<string, Template>();

  function templateOf(decision: Decision, who: Principal | undefined, texts: Texts): Template {
    const [requestId, uid, app, acc, role] = texts;
    const what = decision.kind === 'allow' ? 'allow' : decision.reason;
    // The issuer is one of a few, and its text is not bound to ASCII: it is a part of the template.
    const name = `${what} ${requestId.length} ${uid.length} ${app.length} ${acc.length} ${role.length} ${who?.iss ?? ''}`;
    const known = templates.get(name);
    if (known !== undefined) return known;
    const upper = filled(decision, who, texts, 'A');
    const template = { bytes: upper, holes: holesBetween(upper, filled(decision, who, texts, 'a')) };
    if (templates.size >= maxTemplates) templates.clear();
    templates.set(name, template);
    return template;
  }

  /** The answer with a letter of its own in the place of each text, as often as the text is long. */
  function filled(decision: Decision, who: Principal | undefined, texts: Texts, firstLetter: string): Buffer {
    const [requestId, uid, app, acc, role] = texts;
    const fill = (text: string, i: number): string =>
      String.fromCharCode(firstLetter.charCodeAt(0) + i).repeat(text.length);
    const principal = who && {
      uid: fill(uid, 1),
      app: fill(app, 2),
      acc: fill(acc, 3) as Account,
      role: fill(role, 4),
      iss: who.iss,
    };
    const example = decision.kind === 'allow' && principal !== undefined ? { ...decision, principal } : decision;
    return serialize(example, { requestId: fill(requestId, 0), shownHeaders: [], principal });
  }

  function serialize(decision: Decision, context: ResponseContext): Buffer {
    return authorizationService.Check.responseSerialize(toCheckResponse(settings, decision, context));
  }

  function encode(decision: Decision, context: ResponseContext): Buffer {
    const isAllow = decision.kind === 'allow';
    // A request with further headers under our prefix gets an answer of its own that removes them.
    if (isAllow && settings.identityHeaders.shownToRemove(context.shownHeaders).length > 0)
      return serialize(decision, context);
    const who = isAllow ? decision.principal : context.principal;
    const requestId = isAllow ? '' : context.requestId;
    const texts: Texts = [requestId, who?.uid ?? '', who?.app ?? '', who?.acc ?? '', who?.role ?? ''];
    const { bytes, holes } = templateOf(decision, who, texts);
    const answer = Buffer.from(bytes);
    for (const { start, text } of holes) answer.write(texts[text] ?? '', start, 'latin1');
    return answer;
  }

  encode(refusal('internal', ''), { requestId: uuid, shownHeaders: [], principal: undefined });
  return { encode };
}

/** Of two answers that were filled from 'A' and from 'a', a letter for each text. */
function holesBetween(upper: Buffer, lower: Buffer): Hole[] {
  const holes: Hole[] = [];
  for (let at = 0; at < upper.length; at += 1) {
    if (upper[at] === lower[at]) continue;
    const begins = at === 0 || upper[at - 1] === lower[at - 1];
    if (begins) holes.push({ start: at, text: (upper[at] ?? 0) - 'A'.charCodeAt(0) });
  }
  return holes;
}
