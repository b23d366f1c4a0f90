// Reads a document from a URL with the files that a configuration names for the connection: bytes or a problem within one total timeout.
import { loadRegularFile } from '../files/bounded-file.ts';
import { type Problem, problem } from '../text/problem.ts';
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
    const isOwn = bearerTokenFile !== undefined && new URL(url).origin === origin;
    const bearerToken = isOwn ? await loadBearerToken(bearerTokenFile) : undefined;
    if (typeof bearerToken === 'object') return bearerToken;
    return fetchDocument({ ...files, ...settings, url, validator, bearerToken }, signal);
  };
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
