// Invariants of every answer to a Check (I1 to I4). Every CheckResponse that a test obtains passes through here.
import type { CheckRequestMessage, CheckResponseMessage } from '../src/envoy/protocol.ts';
import { secrets } from './secrets.ts';

export interface Invariants {
  /** Checks I1 to I4 on one answer; throws on a violation. I3 needs the request. */
  hold(response: CheckResponseMessage, request?: CheckRequestMessage): void;
}

const fields = ['uid', 'app', 'acc', 'role', 'iss'];
const rewritten = new Set(['cookie', 'sec-websocket-protocol']);
const ofRefusals = new Set(['content-type', 'cache-control', 'www-authenticate', 'retry-after']);

export function createInvariants(): Invariants {
  /** The only allowed body of `token_invalid`. */
  let invalidToken: string | undefined;
  return {
    hold(response, request) {
      mustHaveWholeCode(response);
      mustHaveOneMember(response);
      mustHaveOurHeaders(response);
      expectNoPartOf(tokenPartsOf(JSON.stringify(request ?? {})), JSON.stringify(response));
      const form = formOf(response);
      if (form === undefined) return;
      invalidToken ??= form;
      must(form === invalidToken, 'I4: two token_invalid differ in request_id only');
    },
  };
}

const ofTheRun = createInvariants();

/** One for the whole run: I4 compares all answers, and each answer goes to the secret scan. */
export const invariants: Invariants = {
  hold(response, request) {
    const { ok_response, dynamic_metadata, ...refusal } = response;
    secrets.show('answer to Envoy', JSON.stringify([ok_response, dynamic_metadata]));
    secrets.show('refusal', JSON.stringify(refusal));
    ofTheRun.hold(response, request);
  },
};

// Not with chai: every answer comes here, and each of its assertions costs more than a check.
function must(holds: boolean, invariant: string): void {
  if (!holds) throw new Error(invariant);
}

function mustHaveWholeCode({ status }: CheckResponseMessage): void {
  must(Number.isInteger(status?.code), 'I1: a whole status.code');
  must(status.code >= 0 && status.code <= 16, 'I1: a status.code of google.rpc');
}

function mustHaveOneMember(response: CheckResponseMessage): void {
  const { status, ok_response, denied_response } = response;
  must((ok_response != null) === (status.code === 0), 'I2: an ok_response exactly with code 0');
  must((denied_response != null) === (status.code !== 0), 'I2: a denied_response with any other code');
  must(!('error_response' in response), 'I2: never an error_response');
}

function mustHaveOurHeaders({ ok_response, denied_response }: CheckResponseMessage): void {
  const headers = ok_response?.headers ?? [];
  const names = headers.map(({ header }) => header.key);
  const prefix = names[0]?.replace(/uid$/, '') ?? '';
  const expected = ok_response === undefined ? [] : fields.map(field => `${prefix}${field}`);
  const others = names.slice(expected.length);
  must(names.slice(0, expected.length).join() === expected.join(), `I2: the identity headers: ${names}`);
  must(
    others.every(name => rewritten.has(name) || (ok_response !== undefined && name.startsWith(prefix))),
    `I2: else only those under their prefix, and what has the token: ${names}`,
  );
  for (const { header, append, append_action } of headers) {
    const isOurs = /^[\x21-\x7e]+(?: [\x21-\x7e]+)*$/.test(header.value);
    must(isOurs || rewritten.has(header.key), `I2: the value of ${header.key}`);
    must(append?.value === false && append_action === 2, `I2: ${header.key} is overwritten, never appended`);
  }
  const removed = new Set(ok_response?.headers_to_remove);
  must(!names.some(name => removed.has(name)), 'I2: removes nothing that it sets');
  const refused = (denied_response?.headers ?? []).map(({ header }) => header.key);
  must(
    refused.every(name => ofRefusals.has(name)),
    `I2: a refusal has no identity header: ${refused}`,
  );
}

/** A `token_invalid` answer without its request id; undefined for any other answer. */
function formOf({ status, denied_response }: CheckResponseMessage): string | undefined {
  const body = denied_response?.body ?? '';
  if (!body.includes('"reason":"token_invalid"')) return undefined;
  const problem = { ...(JSON.parse(body) as Record<string, unknown>), request_id: '' };
  return JSON.stringify({ status, ...denied_response, body: problem });
}

// Two of its parts and the dot between them.
const longWord = /[\w.-]{33,}/g;

/** The parts that only a token has: the long segments of every word with at least two dots. */
export function tokenPartsOf(text: string): ReadonlySet<string> {
  const long = (text.match(longWord) ?? []).map(word => word.split('.').filter(part => part.length >= 16));
  return new Set(long.filter(parts => parts.length >= 2).flat());
}

/** I3 for an answer, a log or the metrics. */
export function expectNoPartOf(parts: Iterable<string>, written: string): void {
  // The message must not contain the part either.
  for (const part of parts) must(!written.includes(part), 'I3: no part of a token is written');
}
