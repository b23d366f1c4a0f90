// What commands that decide read: the configuration, its revocation list, how keys are fetched here, certificates, and a token.
import { type LoadOptions, loadConfig } from '../config/load.ts';
import { loadRegularFile } from '../files/bounded-file.ts';
import { parseCertificates } from '../files/certificates.ts';
import type { ProxySettings } from '../http/proxy.ts';
import { readStart } from '../http/send-request.ts';
import { printable } from '../text/printable.ts';
import { CommandError, type CommandIo, misconfigured } from './command.ts';

/** Rejects with a CommandError. */
export async function loadFetchSettings(command: string, file: string, io: CommandIo, options?: LoadOptions) {
  requireSafeEnvironment(io.env);
  const loaded = await loadConfig(file, options);
  if (loaded.kind === 'misconfiguration') throw misconfigured(file, loaded);
  const { config, revocations } = loaded;
  const onWarning = (warning: string): void => {
    io.stderr.write(`account-authz ${command}: warning: ${printable(warning, maxTextLength)}\n`);
  };
  return { config, revocations, proxy: proxyOf(io.env), onWarning };
}

const maxTextLength = 2048;

export function requireSafeEnvironment(env: CommandIo['env']): void {
  // Node would not verify certificates, so anybody could serve the keys.
  if (env.NODE_TLS_REJECT_UNAUTHORIZED === '0')
    throw new CommandError('NODE_TLS_REJECT_UNAUTHORIZED must not be 0, which turns off certificate checks: unset it');
}

export function proxyOf(env: CommandIo['env']): ProxySettings {
  const first = (...names: string[]): string | undefined =>
    names.map(name => env[name]).find(value => value !== undefined && value !== '');
  // In the order of Go's net/http.
  const httpsProxy = first('HTTPS_PROXY', 'https_proxy');
  const noProxy = first('NO_PROXY', 'no_proxy');
  return { ...(httpsProxy !== undefined && { httpsProxy }), ...(noProxy !== undefined && { noProxy }) };
}

/** The certificates of a file that an option names: one PEM text each, in the order of the file; none where the option is not given. */
export async function loadCertificates(option: string, file: string | undefined): Promise<readonly string[]> {
  if (file === undefined) return [];
  const loaded = await loadRegularFile(file);
  const parsed = loaded.kind === 'problem' ? loaded : parseCertificates(loaded.bytes);
  if (parsed.kind === 'problem') throw new CommandError(`${option}: ${parsed.problem}`);
  return parsed.certificates.map(each => each.toString());
}

/** More than the longest token that a configuration can accept. */
const maxInputBytes = 128 * 1024;

/** The value of Authorization; undefined if the input is empty. Accepts what stands before the token where it is copied from a request or a file. */
export async function readAuthorization(command: string, { stdin, stderr }: CommandIo): Promise<string | undefined> {
  if (stdin.isTTY === true) stderr.write(`account-authz ${command}: paste a token, then Enter and Ctrl-D\n`);
  const bytes = await readStart(stdin, maxInputBytes + 1);
  if (bytes.length > maxInputBytes)
    throw new CommandError(`standard input must be a token of at most ${maxInputBytes} bytes`);
  const input = bytes.toString('latin1').replace(/^\xef\xbb\xbf/, '');
  const text = input.trim().replace(/^authorization: */i, '');
  if (text === '') return undefined;
  if (text.startsWith('{'))
    throw new CommandError('standard input must be a token, without the JSON around it: jq -r .access_token prints it');
  // Envoy never forwards these in a header (RFC 9110 section 5.5); usually they are line ends.
  if (/[^\t -~\x80-\xff]/.test(text))
    throw new CommandError('standard input must be a token: one line without control characters');
  return /^bearer(?: |$)/i.test(text) ? text : `Bearer ${text}`;
}
