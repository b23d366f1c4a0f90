// A function whose cost is searched: the length and the fragments of its inputs, and inputs that are known to be expensive.
import { inLines, inSegments, type Shape } from '../fuzz/shapes.ts';
import { words } from '../generator/random.ts';
import type { Run } from './measure.ts';
import { type Pattern, pattern } from './pattern.ts';

export interface CostTarget {
  readonly name: string;
  /** The longest input that reaches it. */
  readonly maxBytes: number;
  /** The length up to which a quick test judges its growth. */
  readonly quickBytes: number;
  readonly fragments: readonly Buffer[];
  readonly shapes: readonly Shape[];
  /** The seeds of the search. Never empty. */
  readonly known: readonly Pattern[];
  /** Prepares work that does not belong to the target. */
  load(input: Buffer): Run;
}

// The bounds of src/envoy/grpc-server.ts, src/authz/path.ts, src/config/schema.ts (token.maxBytes) and src/commands/explain.ts.
export const maxMessageBytes = 256 * 1024;
export const maxTargetBytes = 8192;
export const maxTokenBytes = 8192;
export const maxTokenJsonBytes = 6000;
export const maxLineBytes = 128 * 1024;
/** Envoy's limit for the headers of one request (max_request_headers_kb). */
export const maxHeaderBytes = 60 * 1024;

/** The most that one input may cost, in allowed requests with a new token: docs/dev/performance.md. */
export const maxMultiple = 50;

export const inRequest = { quickBytes: 8 * 1024 } as const;
/** A document of an issuer or an operator: beyond a thousand members, where V8 changes an object's representation. */
export const inDocument = { quickBytes: 128 * 1024 } as const;

export const fragments = [
  ...words('a A % & + = [ ] ; . / " { } , - _ : ! ? %41 %25 %u0041 %26 a= &a {n} &{n}=1 [] é account_id'),
  ...words('account_id= x-account-id x-auth- "{n}":1, [[ 0 1e9'),
  ...[' ', '\t', '\0', '\\', '\r\n', '\n', '\u0301', '\u212a', '\ufdfa', '\u{1d538}', 'x_auth_{n}\n'],
  ...['x-{n}:1\n', '\\u0041', '\\"'],
].map(text => Buffer.from(text));

export const atFullLength = (
  bytes: number,
  pumps: readonly (readonly [head: string, pump: string, tail?: string])[],
): Pattern[] => pumps.map(([head, pump, tail]) => pattern(bytes, head, pump, tail));

export const texts = { shapes: [inSegments, inLines], fragments, ...inRequest } as const;

export const queries: readonly (readonly [head: string, pump: string, tail?: string])[] = [
  ['%41', '+', 'a['],
  ['', '%&'],
  ['&%'.repeat(255), '%'],
  ['', '%'],
  ['', '%25'],
  ['', '\u0301'],
  ['%41', '\ufdfa'],
  ['%41=', ';'],
  ['%41', 'account_id;'],
  ['', '&{n}=%41'],
  ['%41', '['],
  ['%41', '\0', 'a'],
  ['account_id.%41', '.'],
  ['=account_id;%41', 'a;'],
  ['x=account_id;%41', 'a%41;'],
  ['_method;%41', '%;'],
  ['account_id%2541', '%2541'],
  ['accountid%41', '\uff41'],
];

export const jsonTexts: readonly (readonly [head: string, pump: string, tail?: string])[] = [
  ['', '['],
  ['', '{"a":'],
  ['{"a":[', '[],', '0]}'],
  ['{', '"{n}":0,', '"a":0}'],
  ['{', '"a":0,', '"a":0}'],
  ['{"a":"', '\\\\', '"}'],
  ['{"a":"', '\\"', '"}'],
  ['{"a":"', '\\u0041', '"}'],
  ['{"a":"', ':', '"}'],
  ['{"a":', '9', '}'],
  ['', ' '],
];
