// Reads a document from a URL with the files that a configuration names for the connection: bytes or a problem within one total timeout.
import { isDeepStrictEqual } from 'node:util';
import { loadRegularFile } from '../files/bounded-file.ts';
import { parseBoundedJson } from '../json/strict-json.ts';
import { type Problem, problem } from '../text/problem.ts';
import { leftOut, withoutSecret } from '../text/secret.ts';
import { type FetchFiles, type FetchRequest, type FetchResult, fetchDocument, type Validator } from './fetch.ts';

export interface ConnectionFiles extends FetchFiles {
  /** Sent to the configured URL and others of its origin, never elsewhere. */
  readonly bearerTokenFile?: string | undefined;
}

/** How documents are fetched on this machine. */
export interface SourceSettings extends Pick<FetchRequest, 'proxy' | 'lookup' | 'maxBytes' | 'accept'> {
  readonly timeoutMs: number;
}

/** Reads once. Never rejects, settles as soon as the signal aborts, and accepts a 304 only with a validator. */
export type ReadDocument = (signal: AbortSignal, validator: Validator | undefined) => Promise<FetchResult>;

/** The files that are read for each fetch: a change of one is a reason for it. */
export function connectionFiles(files: ConnectionFiles): readonly string[] {
  const { caFile, clientCertFile, clientKeyFile, bearerTokenFile } = files;
  return [caFile, clientCertFile, clientKeyFile, bearerTokenFile].filter(file => file !== undefined);
}

/** Fetches from any URL. The bearer token goes to the origin of the configured one alone. */
export function createGet(
  files: ConnectionFiles,
  configured: string,
  settings: SourceSettings,
): (url: string, validator: Validator | undefined, signal: AbortSignal) => Promise<FetchResult> {
  const { bearerTokenFile } = files;
  const { origin } = new URL(configured);
  return async (url, validator, signal) => {
    const secret = bearerTokenFile === undefined ? undefined : await loadBearerToken(bearerTokenFile);
    if (typeof secret === 'object') return secret;
    const bearerToken = new URL(url).origin === origin ? secret : undefined;
    const fetched = await fetchDocument({ ...files, ...settings, url, validator, bearerToken }, signal);
    return fetched.kind === 'document' && secret !== undefined ? withoutOwn(secret, fetched) : fetched;
  };
}

const jsonBounds = { maxDepth: 64, maxValues: 10_000 };

/** A server may repeat what it was sent, in a name that is printed or kept. Bytes change only where it does. */
function withoutOwn(secret: string, document: Extract<FetchResult, { kind: 'document' }>): FetchResult {
  const mediaType = document.mediaType && String(withoutSecret(document.mediaType, secret));
  return { ...document, bytes: bytesWithout(secret, document.bytes), mediaType };
}

function bytesWithout(secret: string, bytes: Uint8Array): Uint8Array {
  const json = parseBoundedJson(bytes, jsonBounds);
  if (json.kind === 'value') {
    const value = withoutSecret(json.value, secret);
    return isDeepStrictEqual(value, json.value) ? bytes : Buffer.from(JSON.stringify(value));
  }
  // JSON Lines, or nothing that is read. No character of a token has a meaning there.
  const text = Buffer.from(bytes);
  return text.includes(secret) ? Buffer.from(text.toString().replaceAll(secret, leftOut)) : bytes;
}

/** RFC 6750 section 2.1. A line end after it does not belong to it. */
async function loadBearerToken(file: string): Promise<string | Problem> {
  const loaded = await loadRegularFile(file);
  if (loaded.kind === 'problem') return problem('bearer token file not readable');
  const token = Buffer.from(loaded.bytes).toString('latin1').trim();
  return /^[A-Za-z0-9._~+/-]+=*$/.test(token) ? token : problem('bearer token file without a token');
}

/** One timeout for all of `work`. Does not wait for work that ignores its signal. */
export async function withinTime(
  timeoutMs: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<FetchResult>,
): Promise<FetchResult> {
  const controller = new AbortController();
  return new Promise(resolve => {
    const end = (result: FetchResult): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
      resolve(result);
      controller.abort();
    };
    const stop = (): void => end(problem('stopped'));
    const timer = setTimeout(end, timeoutMs, problem('timed out')).unref();
    signal.addEventListener('abort', stop);
    if (signal.aborted) stop();
    else work(controller.signal).then(end, () => end(problem('internal error')));
  });
}
