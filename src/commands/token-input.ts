// Reads a token, or another short text, from standard input.
import { type Problem, problem } from '../text/problem.ts';
import { readStart } from '../text/read-start.ts';
import type { CommandIo } from './command.ts';

/** More than the longest token that a configuration can accept, and than the longest log line. */
const maxInputBytes = 128 * 1024;

// The problems of input are one sentence, without any of the input.
export async function readInput(
  command: string,
  { stdin, stderr }: CommandIo,
  what: string,
): Promise<{ readonly kind: 'input'; readonly bytes: Buffer } | Problem> {
  if (stdin.isTTY === true) stderr.write(`account-authz ${command}: paste ${what}, then Enter and Ctrl-D\n`);
  const bytes = await readStart(stdin, maxInputBytes + 1);
  if (bytes.length > maxInputBytes) return problem(`standard input must be ${what} of at most ${maxInputBytes} bytes`);
  return { kind: 'input', bytes };
}

/** The value of Authorization; undefined if the input is empty. Accepts `Bearer` before the token, as copied from a request. */
export function toAuthorization(
  input: string,
): { readonly kind: 'authorization'; readonly value: string | undefined } | Problem {
  const text = input.trim();
  if (text === '') return { kind: 'authorization', value: undefined };
  // Envoy never forwards these in a header (RFC 9110 section 5.5); usually they are line ends.
  if (/[^\t -~\x80-\xff]/.test(text)) {
    return problem('standard input must be a token: one line without control characters');
  }
  return { kind: 'authorization', value: /^bearer(?: |$)/i.test(text) ? text : `Bearer ${text}` };
}
