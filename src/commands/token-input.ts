// Reads a token from standard input. The problems of input are one sentence, without any of it.
import { readStart } from '../http/send-request.ts';
import { CommandError, type CommandIo } from './command.ts';

/** More than the longest token that a configuration can accept. */
const maxInputBytes = 128 * 1024;

/** The value of Authorization; undefined if the input is empty. Accepts `Bearer` before the token, as copied from a request. */
export async function readAuthorization(command: string, { stdin, stderr }: CommandIo): Promise<string | undefined> {
  if (stdin.isTTY === true) stderr.write(`account-authz ${command}: paste a token, then Enter and Ctrl-D\n`);
  const bytes = await readStart(stdin, maxInputBytes + 1);
  if (bytes.length > maxInputBytes)
    throw new CommandError(`standard input must be a token of at most ${maxInputBytes} bytes`);
  const text = bytes.toString('latin1').trim();
  if (text === '') return undefined;
  // Envoy never forwards these in a header (RFC 9110 section 5.5); usually they are line ends.
  if (/[^\t -~\x80-\xff]/.test(text))
    throw new CommandError('standard input must be a token: one line without control characters');
  return /^bearer(?: |$)/i.test(text) ? text : `Bearer ${text}`;
}
