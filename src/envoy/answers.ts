// Encodes a decision as the bytes of a CheckResponse. Each reason, with each length of its variable texts, is serialized once, as a
// template with placeholders: serializing every answer costs ten times as much (docs/dev/performance.md).
import type { Decision } from '../authz/authorize.ts';
import { type Principal, upstreamFields } from '../authz/principal.ts';
import { authorizationService } from './protocol.ts';
import { type ResponseContext, type ResponseSettings, toCheckResponse } from './response.ts';

export interface Answers {
  /** Throws only on an internal error; never for `internal` with a UUID, so that every internal error has an answer. */
  encode(decision: Decision, context: ResponseContext): Buffer;
}

/** The fields that differ per call. The issuer is part of the template: there are few, and it need not be ASCII. */
const textFields = upstreamFields.filter(field => field !== 'iss');

/** The request id, the value of each of `textFields`, and what is forwarded, all in ASCII; empty if the answer has none. */
type Texts = readonly string[];

interface Template {
  readonly bytes: Buffer;
  /** Where to write which of `Texts`. */
  readonly placeholders: readonly { readonly start: number; readonly text: number }[];
}

// 0.6 KB each. When the map is full, it is cleared: verified names and accounts have few lengths.
const maxTemplates = 1000;

const uuid = '00000000-0000-0000-0000-000000000000';

export function createAnswers(settings: ResponseSettings): Answers {
  const templates = new Map<string, Template>();

  /** None for a further combination of lengths where claims are forwarded: to clear the map for each costs more than to serialize. */
  function templateOf(decision: Decision, who: Principal | undefined, texts: Texts): Template | undefined {
    const what =
      decision.kind === 'allow'
        ? 'allow'
        : `${decision.reason} ${decision.hint?.isOfResource} ${decision.hint?.scopes.join(' ')}`;
    // A length as one character: cheaper than its digits.
    const name = `${String.fromCharCode(...texts.map(({ length }) => length))}${what} ${who?.iss ?? ''}`;
    const known = templates.get(name);
    if (known !== undefined) return known;
    if (templates.size >= maxTemplates && texts.length > textFields.length + 1) return undefined;
    const upper = renderPlaceholders(decision, who, texts, 'A');
    const lower = renderPlaceholders(decision, who, texts, 'a');
    const template = { bytes: upper, placeholders: findPlaceholders(upper, lower) };
    if (templates.size >= maxTemplates) templates.clear();
    templates.set(name, template);
    return template;
  }

  /** Serializes the answer with each text replaced by as many copies of a letter of its own. */
  function renderPlaceholders(
    decision: Decision,
    who: Principal | undefined,
    texts: Texts,
    firstLetter: string,
  ): Buffer {
    const [requestId = '', ...ofFields] = texts.map((text, i) =>
      String.fromCharCode(firstLetter.charCodeAt(0) + i).repeat(text.length),
    );
    // A field that is not known stays out of the answer.
    const rendered = Object.fromEntries(textFields.map((field, i) => [field, who?.[field] && ofFields[i]]));
    const principal = who && { ...who, ...rendered };
    const example =
      decision.kind === 'allow' && who
        ? {
            ...decision,
            principal: { ...decision.principal, ...rendered },
            forwarded: decision.forwarded.map((text, i) => text && ofFields[textFields.length + i]),
          }
        : decision;
    return serialize(example, { requestId, receivedHeaders: [], principal });
  }

  function serialize(decision: Decision, context: ResponseContext): Buffer {
    return authorizationService.Check.responseSerialize(toCheckResponse(settings, decision, context));
  }

  function encode(decision: Decision, context: ResponseContext): Buffer {
    const isAllow = decision.kind === 'allow';
    // Not from a template: the answer also removes these headers of the request, or rewrites some.
    const isOwn = (allow: Extract<Decision, { kind: 'allow' }>): boolean =>
      allow.rewrites !== undefined || settings.identityHeaders.strayNames(context.receivedHeaders).length > 0;
    if (isAllow && isOwn(decision)) return serialize(decision, context);
    const who = isAllow ? decision.principal : context.principal;
    const requestId = isAllow ? '' : context.requestId;
    const texts = [requestId];
    for (const field of textFields) texts.push(who?.[field] ?? '');
    if (isAllow) for (const text of decision.forwarded) texts.push(text ?? '');
    const template = templateOf(decision, who, texts);
    if (template === undefined) return serialize(decision, context);
    const { bytes, placeholders } = template;
    const answer = Buffer.from(bytes);
    for (const { start, text } of placeholders) answer.write(texts[text] ?? '', start, 'latin1');
    return answer;
  }

  const context = { requestId: uuid, receivedHeaders: [], principal: undefined };
  encode({ kind: 'refusal', reason: 'internal', detail: '' }, context);
  return { encode };
}

/** The places where two renderings differ; `upper` has the letters from 'A' on. */
function findPlaceholders(upper: Buffer, lower: Buffer): Template['placeholders'] {
  const placeholders: { start: number; text: number }[] = [];
  for (let at = 0; at < upper.length; at += 1) {
    if (upper[at] === lower[at]) continue;
    const begins = at === 0 || upper[at - 1] === lower[at - 1];
    if (begins) placeholders.push({ start: at, text: (upper[at] ?? 0) - 'A'.charCodeAt(0) });
  }
  return placeholders;
}
