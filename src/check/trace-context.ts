// Parses `traceparent` (W3C Trace Context). An invalid one is ignored.

/** The call that a check belongs to, as its caller named it. */
interface TraceParent {
  readonly traceId: string;
  readonly parentId: string;
  readonly sampled: boolean;
}

// Sections 3.2.2 and 3.2.4: lower-case hex, no version ff, no id of zeros; version 00 ends with its flags, a later one may go on
// after a dash.
const grammar = /^(?!ff|00.{54})[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]([0-9a-f])(?:-|$)/;

export function parseTraceParent(text: string | undefined): TraceParent | undefined {
  if (text === undefined) return undefined;
  const [, traceId, parentId, flags] = grammar.exec(text) ?? [];
  if (traceId === undefined || parentId === undefined || flags === undefined) return undefined;
  return { traceId, parentId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}
