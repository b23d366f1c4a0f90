// Invariants of every answer to a Check (I1 to I5 of the security cases). Every CheckResponse that a test obtains passes through here;
// test/assurance/invariants.test.ts checks that, and that a violation of each is found.
import { expect } from 'chai';
import type { CheckRequestMessage, CheckResponseMessage } from '../../src/envoy/protocol.ts';
import { secrets } from './secrets.ts';

export interface Invariants {
  /** Checks I1 to I4 on one answer; throws on a violation. I3 needs the request. */
  hold(response: CheckResponseMessage, request?: CheckRequestMessage): void;
}

const fields = ['uid', 'app', 'acc', 'role', 'iss'];

export function createInvariants(): Invariants {
  /** The only allowed body of `token_invalid`. */
  let invalidToken: string | undefined;
  return {
    hold(response, request) {
      expectWholeCode(response);
      expectOneMember(response);
      expectOurHeaders(response);
      expectNoPartOf(tokenPartsOf(JSON.stringify(request ?? {})), JSON.stringify(response));
      const form = formOf(response);
      if (form === undefined) return;
      invalidToken ??= form;
      expect(form, 'I4: two token_invalid differ in request_id only').to.equal(invalidToken);
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

function expectWholeCode({ status }: CheckResponseMessage): void {
  expect(Number.isInteger(status?.code), 'I1: a whole status.code').to.equal(true);
  expect(status.code, 'I1: a status.code of google.rpc').to.be.within(0, 16);
}

function expectOneMember(response: CheckResponseMessage): void {
  const { status, ok_response, denied_response } = response;
  expect(ok_response != null, 'I2: an ok_response exactly with code 0').to.equal(status.code === 0);
  expect(denied_response != null, 'I2: a denied_response with any other code').to.equal(status.code !== 0);
  expect(response, 'I2: never an error_response').to.not.have.property('error_response');
}

function expectOurHeaders({ ok_response, denied_response }: CheckResponseMessage): void {
  const headers = ok_response?.headers ?? [];
  const names = headers.map(({ header }) => header.key);
  const prefix = names[0]?.replace(/uid$/, '') ?? '';
  const expected = ok_response === undefined ? [] : fields.map(field => `${prefix}${field}`);
  const actor = `${prefix}actor`;
  expect(
    names.filter(name => name !== actor),
    'I2: exactly the identity headers, actor if the token has one',
  ).to.deep.equal(expected);
  for (const { header, append, append_action } of headers) {
    expect(header.value, `I2: the value of ${header.key}`).to.match(/^[\x21-\x7e]+$/);
    expect([append?.value, append_action], 'I2: overwritten, never appended').to.deep.equal([false, 2]);
  }
  const removed = new Set(ok_response?.headers_to_remove);
  expect(
    names.filter(name => removed.has(name)),
    'I2: removes nothing that it sets',
  ).to.deep.equal([]);
  const refused = (denied_response?.headers ?? []).map(({ header }) => header.key);
  expect(
    refused.filter(name => !['content-type', 'cache-control', 'www-authenticate', 'retry-after'].includes(name)),
    'I2: a refusal has no identity header',
  ).to.deep.equal([]);
}

/** A `token_invalid` answer without its request id; undefined for any other answer. */
function formOf({ status, denied_response }: CheckResponseMessage): string | undefined {
  const body = denied_response?.body ?? '';
  if (!body.includes('"reason":"token_invalid"')) return undefined;
  const problem = { ...(JSON.parse(body) as Record<string, unknown>), request_id: '' };
  return JSON.stringify({ status, ...denied_response, body: problem });
}

/** The parts that only a token has: the long segments of every word with at least two dots. */
export function tokenPartsOf(text: string): ReadonlySet<string> {
  const long = text.split(/[^\w.-]+/).map(word => word.split('.').filter(part => part.length >= 16));
  return new Set(long.filter(parts => parts.length >= 2).flat());
}

/** I3 for an answer, a log or the metrics. */
export function expectNoPartOf(parts: Iterable<string>, written: string): void {
  // The message must not contain the part either.
  for (const part of parts) expect(written.includes(part), 'I3: no part of a token is written').to.equal(false);
}
