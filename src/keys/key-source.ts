// Reads the key set of one issuer from its source: a JWKS URL, the JWKS URL of a discovery document, or a file.
// Returns bytes or a problem within one total timeout. jwks.ts parses the bytes.
import { type FSWatcher, watch } from 'node:fs';
import { dirname } from 'node:path';
import { isLoopbackUrl, keyUrlProblem } from '../address/key-url.ts';
import { createDeferred } from '../deferred.ts';
import { loadBoundedFile, type UnreadableFile } from '../files/bounded-file.ts';
import { fileSignature, notARegularFile } from '../files/file-signature.ts';
import { isJsonObject, memberOf, parseBoundedJson } from '../json/strict-json.ts';
import { documentBounds, maxKeySetBytes } from './jwks.ts';
import type { CreateKeyTransport, GetAnchors, GetDocument, ProxySettings } from './key-transport.ts';
import type { Anchors } from './key-trust.ts';

/** The key settings of an issuer. Exactly one of the three sources is set. */
export interface IssuerKeySettings {
  readonly issuer: string;
  readonly jwksUrl?: string | undefined;
  readonly discoveryUrl?: string | undefined;
  readonly jwksFile?: string | undefined;
  readonly algorithms: readonly string[];
  readonly caFile?: string | undefined;
}

/** For a conditional request (RFC 9110 section 13.1.2). */
export interface Validator {
  readonly url: string;
  readonly etag: string;
}

export type SourceResult =
  | {
      readonly kind: 'body';
      readonly bytes: Uint8Array;
      readonly validator: Validator | undefined;
      readonly anchors: Anchors;
    }
  | { readonly kind: 'notModified'; readonly anchors: Anchors }
  | SourceProblem;

export interface SourceProblem {
  readonly kind: 'problem';
  readonly problem: string;
}

export interface KeySource {
  readonly kind: 'jwksUrl' | 'discoveryUrl' | 'jwksFile';
  /** The URL or path as configured. */
  readonly place: string;
  /** Never rejects. Settles as soon as the signal aborts. */
  read(signal: AbortSignal, validator: Validator | undefined): Promise<SourceResult>;
  /** Calls `onChange` when the source may have changed. Returns the function that ends the watch. */
  watch(onChange: () => void, onProblem: (problem: string) => void): () => void;
}

const settleMs = 50;

/** Throws if no source is set, which the configuration does not allow. */
export function createKeySource(
  issuer: IssuerKeySettings,
  timeoutMs: number,
  proxy: ProxySettings,
  createTransport: CreateKeyTransport,
): KeySource {
  const { jwksUrl, discoveryUrl, jwksFile } = issuer;
  if (jwksFile !== undefined) return createFileSource(jwksFile, timeoutMs);
  const place = jwksUrl ?? discoveryUrl;
  if (place === undefined) throw new Error('an issuer without a key source');
  const transport = createTransport({ caFile: issuer.caFile, proxy, timeoutMs });
  return {
    kind: jwksUrl === undefined ? 'discoveryUrl' : 'jwksUrl',
    place,
    read: (signal, validator) =>
      withinTime(timeoutMs, signal, limited =>
        transport.use(limited, async (get, anchors) => {
          const url = jwksUrl ?? (await readDiscovery(get, place, issuer.issuer));
          return typeof url === 'string' ? readKeySet(get, anchors, url, validator) : url;
        }),
      ),
    watch: () => () => undefined,
  };
}

async function readKeySet(
  get: GetDocument,
  getAnchors: GetAnchors,
  url: string,
  validator: Validator | undefined,
): Promise<SourceResult> {
  const document = await get(url, validator?.url === url ? validator.etag : undefined);
  if (document.kind === 'problem') return document;
  const anchors = await getAnchors();
  if (document.kind === 'notModified') return { kind: 'notModified', anchors };
  const { bytes, etag } = document;
  return { kind: 'body', bytes, validator: etag === undefined ? undefined : { url, etag }, anchors };
}

/** The jwks_uri of the issuer's metadata, or their problem. */
async function readDiscovery(get: GetDocument, url: string, issuer: string): Promise<string | SourceProblem> {
  const document = await get(url);
  if (document.kind === 'problem') return problem(`discovery: ${document.problem}`);
  if (document.kind === 'notModified') return problem('discovery: status 304');
  return parseDiscovery(document.bytes, url, issuer);
}

/** The jwks_uri of the metadata from this URL (OpenID Connect Discovery section 3, RFC 8414). Never throws. */
export function parseDiscovery(bytes: Uint8Array, url: string, issuer: string): string | SourceProblem {
  const json = parseBoundedJson(bytes, documentBounds);
  if (json.kind === 'problem') return problem(`discovery: ${json.problem}`);
  const metadata = json.value;
  if (!isJsonObject(metadata)) return problem('discovery: not an object');
  // RFC 8414 section 3.3: metadata of another issuer must not be used.
  if (memberOf(metadata, 'issuer') !== issuer) return problem('discovery: issuer differs');
  const jwksUri = memberOf(metadata, 'jwks_uri');
  if (typeof jwksUri !== 'string') return problem('discovery: no jwks_uri');
  if (keyUrlProblem(jwksUri) !== undefined) return problem('discovery: jwks_uri refused');
  // Plain http is allowed for loopback only, and only a document from loopback may point there.
  const isPlain = new URL(jwksUri).protocol === 'http:';
  if (isPlain && !isLoopbackUrl(url)) return problem('discovery: jwks_uri refused');
  return jwksUri;
}

function createFileSource(path: string, timeoutMs: number): KeySource {
  return {
    kind: 'jwksFile',
    place: path,
    read: signal => withinTime(timeoutMs, signal, () => readKeyFile(path).catch(() => problem(fileProblems.other))),
    watch: (onChange, onProblem) => watchFile(path, onChange, onProblem),
  };
}

async function readKeyFile(path: string): Promise<SourceResult> {
  // Before opening: a pipe would block until somebody writes to it.
  if ((await fileSignature(path)) === notARegularFile) return problem('not a regular file');
  const content = await loadBoundedFile(path, maxKeySetBytes);
  if (content.kind === 'problem') return problem(fileProblems[content.reason]);
  return { kind: 'body', bytes: content.bytes, validator: undefined, anchors: [] };
}

const fileProblems: Readonly<Record<UnreadableFile['reason'], string>> = {
  missing: 'no such file',
  directory: 'not a regular file',
  denied: 'file not readable',
  'too large': 'body too large',
  other: 'file error',
};

// Watches the directory: Kubernetes replaces a symbolic link in it, and editors replace the file. On a mount without change
// events the background refresh reads the file.
function watchFile(path: string, onChange: () => void, onProblem: (problem: string) => void): () => void {
  let settling: NodeJS.Timeout | undefined;
  let watcher: FSWatcher | undefined;
  let seen: string | undefined;
  const compare = async (): Promise<void> => {
    const signature = await fileSignature(path);
    if (watcher === undefined || signature === seen) return;
    seen = signature;
    onChange();
  };
  try {
    watcher = watch(dirname(path), { persistent: false }, () => {
      clearTimeout(settling);
      settling = setTimeout(compare, settleMs).unref();
    });
    watcher.on('error', () => onProblem('file watch ended'));
  } catch {
    onProblem('file watch not available');
  }
  return () => {
    clearTimeout(settling);
    watcher?.close();
    watcher = undefined;
  };
}

/** One timeout for all of `work`. Does not wait for work that ignores its signal. */
async function withinTime(
  timeoutMs: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<SourceResult>,
): Promise<SourceResult> {
  const controller = new AbortController();
  const ended = createDeferred<SourceResult>();
  const end = (word: string): void => {
    ended.resolve(problem(word));
    controller.abort();
  };
  const abort = (): void => end('stopped');
  const timer = setTimeout(end, timeoutMs, 'timed out').unref();
  signal.addEventListener('abort', abort);
  if (signal.aborted) abort();
  try {
    return await Promise.race([ended.promise, work(controller.signal)]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}

function problem(word: string): SourceProblem {
  return { kind: 'problem', problem: word };
}
