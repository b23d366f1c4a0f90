// The request as the policy sees it, read from the wire by `envoy/request.ts`.
import type { DetailOf } from './checks.ts';

export interface RequestFacts {
  readonly method: string;
  /** Path and query as Envoy routes them, undecoded. */
  readonly target: string;
  /** As sent, with its port; empty if the message has none. */
  readonly host: string;
  readonly headers: RequestHeaders;
  /** The client's certificate as Envoy shows it: PEM, percent-encoded; empty without one. */
  readonly certificate: string;
  /** Set if the message contradicts itself: such a request is always refused. */
  readonly contradiction: DetailOf<'request_invalid'> | undefined;
}

export interface RequestHeaders {
  /** The value of each line of the header with this lower-case name, in the order received. */
  get(name: string): readonly string[] | undefined;
  /** Lower-case names, with duplicates. */
  keys(): Iterable<string>;
}

/** The value of a header that was sent exactly once. */
export function singleHeader(facts: RequestFacts, name: string): string | undefined {
  const values = facts.headers.get(name);
  return values?.length === 1 ? values[0] : undefined;
}

export const maxNominated = 256;

/** RFC 9110 section 7.6.1: a proxy removes the headers that `connection` names. Envoy forwards it with an upgrade. One more than the bound at most. */
export function nominatedNames(headers: RequestHeaders): readonly string[] {
  const lines = headers.get('connection');
  return lines === undefined
    ? []
    : lines
        .join()
        .toLowerCase()
        .split(/[\s,]+/, maxNominated + 1);
}
