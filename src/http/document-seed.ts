// Stores the last good document of a source on disk, for a start while the source is down. It is bound to the source, written atomically, and
// never read where others could have written it. Its age is by the wall clock, which spans a restart.
import { hash, randomUUID } from 'node:crypto';
import type { Stats } from 'node:fs';
import { lstat, mkdir, readdir, readFile, rename, stat, unlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { memberOf, parseStrictJson } from '../json/strict-json.ts';
import { errorCode } from '../text/problem.ts';

export interface SeedSettings {
  readonly cacheDirectory: string;
  /** Of the source. Each has its own seed. */
  readonly location: string;
  readonly readOnly: boolean;
  readonly maxAgeMs: number;
  readonly wallNow: () => number;
  /** Gets the problem of a load or a write. Not repeated until it changes. */
  readonly onWarning: (problem: string) => void;
}

export interface DocumentSeed<Content> {
  /** The last seed, and its age since the start of the fetch that confirmed it, if it may be used. Never rejects. */
  load(): Promise<(Content & { readonly ageMs: number }) | undefined>;
  /** Written in the order of the calls, the bytes before the fields: where they are given, the fields have their digest. */
  save(fields: Readonly<Record<string, unknown>>, confirmedWallMs: number, bytes?: Uint8Array): void;
  /** Resolves when all writes are done. Never rejects. */
  written(): Promise<void>;
}

export function createDocumentSeed<Content extends object>(
  settings: SeedSettings & {
    readonly version: number;
    /** Of the fields. */
    readonly maxBytes: number;
    /** What the fields of a seed of this source hold, or why it is not used. `read` gets the bytes beside them. */
    readonly restore: (
      field: (name: string) => unknown,
      read: (maxBytes: number) => Promise<Uint8Array | string | undefined>,
    ) => Promise<Content | string>;
  },
): DocumentSeed<Content> {
  const { cacheDirectory, location, version, readOnly, maxBytes, maxAgeMs, wallNow, onWarning, restore } = settings;
  const path = join(cacheDirectory, `${digestOf(location)}.json`);
  const bytesPath = `${path}l`;
  let writing: Promise<void> = Promise.resolve();
  let lastProblem: string | undefined;

  function report(problem: string | undefined): void {
    if (problem !== undefined && problem !== lastProblem) onWarning(problem);
    lastProblem = problem;
  }

  /** The content, or why it is not used; undefined without a file. */
  async function read(): Promise<(Content & { readonly ageMs: number }) | string | undefined> {
    const bytes = await readSeedFile(path, maxBytes);
    if (!(bytes instanceof Uint8Array)) return bytes;
    const json = parseStrictJson(bytes);
    if (json.kind === 'problem') return json.problem;
    const field = (name: string): unknown => memberOf(json.value, name);
    const confirmedWallMs = field('confirmedAt');
    if (field('version') !== version) return 'not a seed';
    if (typeof confirmedWallMs !== 'number' || !Number.isSafeInteger(confirmedWallMs)) return 'not a seed';
    if (field('location') !== location) return 'of another issuer or source';
    const ageMs = wallNow() - confirmedWallMs;
    if (ageMs < 0 || ageMs >= maxAgeMs) return ageMs < 0 ? 'from the future' : 'too old';
    const content = await restore(field, max => readSeedFile(bytesPath, max));
    return typeof content === 'string' ? content : { ...content, ageMs };
  }

  async function write(fields: object, confirmedAt: number, bytes?: Uint8Array): Promise<string | undefined> {
    try {
      await mkdir(cacheDirectory, { recursive: true, mode: 0o700 });
      // Reported while the source is up: the next start would not use the seed.
      if (isWritableByOthers(await stat(cacheDirectory))) return 'seed not written: folder writable by others';
      if (bytes !== undefined) await writeAtomically(bytesPath, bytes);
      await writeAtomically(path, JSON.stringify({ version, location, confirmedAt, ...fields }));
      return undefined;
    } catch (error) {
      return `seed not written: ${errorCode(error)}`;
    }
  }

  return {
    async load() {
      const loaded = await read();
      if (typeof loaded !== 'string') return loaded;
      report(`seed not used: ${loaded}`);
      return undefined;
    },
    save(fields, confirmedWallMs, bytes) {
      if (readOnly) return;
      writing = writing.then(async () => report(await write(fields, Math.floor(confirmedWallMs), bytes)));
    },
    written: () => writing,
  };
}

/** The bytes, or why they cannot be used; undefined without a file. */
async function readSeedFile(path: string, maxBytes: number): Promise<Uint8Array | string | undefined> {
  try {
    if (isWritableByOthers(await stat(dirname(path)))) return 'folder writable by others';
    const stats = await lstat(path);
    if (!stats.isFile() || stats.size > maxBytes) return 'not a seed';
    return isWritableByOthers(stats) ? 'writable by others' : await readFile(path);
  } catch (error) {
    const code = errorCode(error);
    return code === 'ENOENT' || code === 'ENOTDIR' ? undefined : `not readable: ${code}`;
  }
}

// A writer here chooses what we trust. Allowed: this user, root, and the groups of this process, for which Kubernetes makes the files of
// a volume writable (`fsGroup`). In a sticky folder nobody can replace the file of another user.
function isWritableByOthers(stats: Stats): boolean {
  const { uid, gid, mode } = stats;
  if (uid !== 0 && uid !== process.geteuid?.()) return true;
  if (stats.isDirectory() && (mode & 0o1000) !== 0) return false;
  const ownGroups = [process.getegid?.(), ...(process.getgroups?.() ?? [])];
  return (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && !ownGroups.includes(gid));
}

const temporaryName = /^[0-9a-f]{64}\.[a-z]+\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.tmp$/;
/** Another instance may be writing a younger one. */
const leftOverMs = 60_000;

/** Removes what a process has left that was killed while it wrote a seed. Never rejects. */
export async function removeLeftovers(cacheDirectory: string): Promise<void> {
  const names = await readdir(cacheDirectory).catch(() => []);
  for (const name of names.filter(each => temporaryName.test(each))) {
    const path = join(cacheDirectory, name);
    const stats = await lstat(path).catch(() => undefined);
    if (stats?.isFile() && Date.now() - stats.mtimeMs > leftOverMs) await unlink(path).catch(() => undefined);
  }
}

async function writeAtomically(path: string, content: string | Uint8Array): Promise<void> {
  const temporary = `${path}.${randomUUID()}.tmp`;
  try {
    await writeFile(temporary, content, { flag: 'wx', mode: 0o600, flush: true });
    await rename(temporary, path);
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
}

export function digestOf(text: string): string {
  return hash('sha256', text, 'hex');
}
