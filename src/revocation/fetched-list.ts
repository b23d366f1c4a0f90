// A revocation list by URL: fetched in the background, in force as soon as it is read, kept through an outage until it is too old, and on
// disk for a start while its publisher is down. What is no list changes nothing.
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { DetailOf } from '../authz/checks.ts';
import { createDigest } from '../files/file-watch.ts';
import {
  createDocumentKeeper,
  type DocumentKeeper,
  type DocumentStatus,
  type KeeperSurroundings,
} from '../http/document-keeper.ts';
import {
  createDocumentState,
  type DocumentLimits,
  type DocumentState,
  type FetchEnded,
  type LifeEvent,
  reduceDocument,
} from '../http/document-machine.ts';
import { createDocumentSeed } from '../http/document-seed.ts';
import { type ConnectionFiles, connectionFiles, createGet, withinTime } from '../http/document-source.ts';
import type { FetchedDocument, Validator } from '../http/fetch.ts';
import type { ProxySettings } from '../http/proxy.ts';
import { printable } from '../text/printable.ts';
import { withoutQuery } from '../text/url.ts';
import { createListReader, type LineProblem } from './list-reader.ts';
import type { RevocationList } from './revocation-list.ts';

export interface ListSettings extends ConnectionFiles {
  readonly url: string;
  readonly refreshSeconds: number;
  readonly maxAgeSeconds: number;
  /** `timeoutSeconds` and `cacheDirectory` of `keys`. */
  readonly timeoutSeconds: number;
  readonly cacheDirectory?: string | undefined;
}

/** In the place of a list that cannot decide. */
export interface ListUnavailable {
  readonly kind: 'unavailable';
  readonly detail: DetailOf<'revocation_unavailable'>;
}

export interface FetchedListStatus extends DocumentStatus {
  /** Without its query, which may have a secret. */
  readonly url: string;
  readonly entries: number;
}

/** Must not throw. */
export interface FetchedListObserver {
  /** After each fetch. `change` is what it made of a list that was there: other bytes, or none. */
  onFetched(event: {
    readonly change: 'other list' | undefined;
    /** Undefined after a success. Of a refused list also each line. */
    readonly problem: string | undefined;
    readonly lines: readonly LineProblem[];
  }): void;
  /** The first usable list, or the first one after it was too old. */
  onUsable(): void;
  /** Not repeated until it changes. */
  onWarning(problem: string): void;
}

interface ListContent {
  readonly list: RevocationList;
  readonly digest: string;
}

/** A list that another one, with other times or files, may go on with. */
interface InheritedList extends ListContent {
  readonly ageMs: number;
  readonly validator: Validator | undefined;
}

export interface FetchedList {
  /** What decides now. */
  current(): RevocationList | ListUnavailable;
  status(): FetchedListStatus;
  /** The usable list, for one of the same URL. */
  exportList(url: string): InheritedList | undefined;
  /** Does not wait for the network. Never rejects. */
  start(): Promise<void>;
  /** Resolves when the fetch in flight has ended, successful or not. */
  fetchEnded(): Promise<void>;
  /** Fetches now, and drops nothing. */
  refreshNow(): void;
  stop(): Promise<void>;
}

interface ListState extends DocumentState {
  readonly content: ListContent | undefined;
}

type ListEvent =
  | { readonly kind: 'seeded'; readonly ageMs: number; readonly content: ListContent }
  | LifeEvent
  | FetchEnded<GoodList>;

interface GoodList {
  readonly kind: 'fetched';
  readonly content: ListContent;
  /** Undefined for those that are in force already. */
  readonly bytes: Uint8Array | undefined;
}

interface RefusedList {
  readonly kind: 'refused';
  readonly problem: string;
  readonly lines: readonly LineProblem[];
}

const maxBytes = 32 * 1024 * 1024;
const maxSeedBytes = 16 * 1024;
const seedVersion = 1;
const maxFirstBackoffMs = 5_000;
/** Between two writes of the age of an unchanged list: what is on disk may only look older than it is. */
const maxSeedDelayMs = 60_000;

/** No cooldown: who asks for a list at once, by SIGHUP or a changed file, gets it at once. */
export function listLimits(settings: Pick<ListSettings, 'refreshSeconds' | 'maxAgeSeconds'>): DocumentLimits {
  const refreshMs = settings.refreshSeconds * 1000;
  const backoff = { fromMs: Math.min(refreshMs, maxFirstBackoffMs), toMs: 60_000 };
  return { refreshMs, maxAgeMs: settings.maxAgeSeconds * 1000, cooldownMs: 0, maxRetryMs: 15_000, backoff };
}

export function createFetchedList(
  options: KeeperSurroundings & {
    readonly settings: ListSettings;
    readonly observer: FetchedListObserver;
    readonly proxy: ProxySettings;
    /** Uses the list on disk, and never writes it. */
    readonly seedReadOnly: boolean;
    /** Asked at the start, so that its age counts on. It replaces the list on disk. */
    readonly inherited?: (() => InheritedList | undefined) | undefined;
  },
): FetchedList {
  const { settings, observer, proxy, monotonicNow, wallNow = Date.now } = options;
  const { url, cacheDirectory } = settings;
  const [maxAgeMs, timeoutMs] = [settings.maxAgeSeconds * 1000, settings.timeoutSeconds * 1000];
  const shownUrl = withoutQuery(url);
  const get = createGet(settings, url, { proxy, timeoutMs, maxBytes, accept: '*/*' });
  const seed =
    cacheDirectory === undefined
      ? undefined
      : createDocumentSeed({
          cacheDirectory,
          location: JSON.stringify(['revocation', url]),
          version: seedVersion,
          maxBytes: maxSeedBytes,
          readOnly: options.seedReadOnly,
          maxAgeMs,
          wallNow,
          onWarning: observer.onWarning,
          restore: restoreList,
        });
  let validator: Validator | undefined;
  let savedMs = Number.NEGATIVE_INFINITY;
  /** Before the fetch that ends. */
  let hadContent = false;

  const keeper: DocumentKeeper<ListState, ListEvent> = createDocumentKeeper({
    initial: { ...createDocumentState(listLimits(settings)), content: undefined },
    reduce,
    read: (signal, condition) => withinTime(timeoutMs, signal, limited => get(url, condition, limited)),
    parse: document => parseList(document, keeper.state().content),
    onUsable: observer.onUsable,
    surroundings: options,
    onEnded({ brought, startedWallMs, validator: found }) {
      const { lastResult, lastProblem, content } = keeper.state();
      validator = found;
      const bytes = brought.kind === 'fetched' ? brought.bytes : undefined;
      const isDue = monotonicNow() - savedMs >= Math.min(maxSeedDelayMs, maxAgeMs / 10);
      if (lastResult === 'success' && (bytes !== undefined || isDue)) {
        savedMs = monotonicNow();
        seed?.save({ digest: content?.digest, etag: validator?.etag }, startedWallMs, bytes);
      }
      observer.onFetched({
        change: bytes !== undefined && hadContent ? 'other list' : undefined,
        problem: lastResult === 'success' ? undefined : (lastProblem ?? 'not named'),
        lines: brought.kind === 'refused' ? brought.lines : [],
      });
      hadContent = content !== undefined;
    },
  });
  /** Reads the list of a seed: its bytes lie beside the fields. */
  async function restoreList(
    field: (name: string) => unknown,
    read: (most: number) => Promise<Uint8Array | string | undefined>,
  ) {
    const bytes = await read(maxBytes);
    if (!(bytes instanceof Uint8Array)) return bytes ?? 'damaged';
    const found = await parseList({ kind: 'document', bytes }, undefined);
    if (found.kind === 'refused') return found.problem;
    const etag = field('etag');
    if (found.content.digest !== field('digest')) return 'damaged';
    return { ...found.content, validator: typeof etag === 'string' ? { url, etag } : undefined };
  }

  function unavailable(): ListUnavailable {
    const { confirmedMs, lastProblem } = keeper.state();
    const last = lastProblem === undefined ? '' : `, last fetch: ${lastProblem}`;
    const detail =
      confirmedMs === undefined
        ? (`no revocation list yet${last}` as const)
        : (`revocation list too old${last}` as const);
    return { kind: 'unavailable', detail };
  }

  return {
    current() {
      const { content } = keeper.state();
      return content !== undefined && keeper.isUsable() ? content.list : unavailable();
    },
    status() {
      const { state, ...others } = keeper.status();
      return { url: shownUrl, state, entries: keeper.state().content?.list.entries ?? 0, ...others };
    },
    exportList(other) {
      const { content, confirmedMs = 0 } = keeper.state();
      if (other !== url || content === undefined || !keeper.isUsable()) return undefined;
      return { ...content, ageMs: monotonicNow() - confirmedMs, validator };
    },
    start: () =>
      keeper.start(connectionFiles(settings), async () => {
        const given = options.inherited?.() ?? (await seed?.load());
        if (given === undefined) return undefined;
        hadContent = true;
        ({ validator } = given);
        const { list, digest, ageMs } = given;
        return { event: { kind: 'seeded', ageMs, content: { list, digest } }, validator };
      }),
    async fetchEnded() {
      await keeper.ended();
    },
    refreshNow: () => keeper.step({ kind: 'changed' }),
    async stop() {
      keeper.stop();
      await seed?.written();
    },
  };
}

function reduce(state: ListState, event: ListEvent, nowMs: number): ListState {
  const next = reduceDocument(state, event, nowMs);
  return next !== state && 'content' in event ? { ...next, content: event.content } : next;
}

const sliceBytes = 64 * 1024;

/** Slice by slice: calls are answered between two. The bytes that are in force already are not read again. */
async function parseList(
  { bytes, mediaType }: FetchedDocument,
  inForce: ListContent | undefined,
): Promise<GoodList | RefusedList> {
  // A fault of a server must not lift every revocation.
  if (bytes.length === 0) return refused('an empty body: an empty list is an empty line or a comment', []);
  const whole = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (inForce !== undefined) {
    const digest = createDigest();
    await inSlices(whole, digest.add);
    if (digest.text() === inForce.digest) return { kind: 'fetched', content: inForce, bytes: undefined };
  }
  const reader = createListReader();
  await inSlices(whole, reader.add);
  const read = reader.end();
  if (read.kind === 'revocations') {
    const { list, digest } = read;
    return { kind: 'fetched', content: { list, digest }, bytes };
  }
  const [{ line, member, message } = { line: 1, message: 'invalid' }] = read.problems;
  const type = line === 1 && member === undefined && mediaType !== undefined ? `${printable(mediaType)}, ` : '';
  return refused(`${type}line ${line} ${member === undefined ? '' : `${member} `}${message}`, read.problems);
}

function refused(problem: string, lines: readonly LineProblem[]): RefusedList {
  return { kind: 'refused', problem, lines };
}

async function inSlices(bytes: Buffer, read: (slice: Buffer) => void): Promise<void> {
  for (let start = 0; start < bytes.length; start += sliceBytes) {
    read(bytes.subarray(start, start + sliceBytes));
    await nextTurn();
  }
}
