// What is known of a request before anything is decided: read from the wire by `envoy/request.ts`, from options by `explain`.

export interface RequestFacts {
  readonly method: string;
  /** Path and query as Envoy routes them, undecoded. */
  readonly target: string;
  /** Lower-case name → the value of each line, in the order received. */
  readonly headers: ReadonlyMap<string, readonly string[]>;
  /** Set where the message itself contradicts: such a request is refused whatever else it says. */
  readonly contradiction: string | undefined;
}

/** The value of a header that was sent exactly once. */
export function singleHeader(facts: RequestFacts, name: string): string | undefined {
  const values = facts.headers.get(name);
  return values?.length === 1 ? values[0] : undefined;
}
