// Stores the last good key set of a ring on disk, for a start while its issuers are down. It is bound to the issuers and to the location of
// the keys, written atomically, and parsed as strictly as an answer from the network. Its age is by the wall clock, which spans a restart.
import { hash, randomUUID } from 'node:crypto';
import type { Stats } from 'node:fs';
import { lstat, mkdir, readFile, rename, stat, unlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { maxDocumentBytes } from '../http/fetch.ts';
import { itemsOf, memberOf, parseStrictJson } from '../json/strict-json.ts';
import { errorCode } from '../text/problem.ts';
import { type KeySet, parseKeySet } from './jwks.ts';
import type { Keys } from './key-set-machine.ts';

/** Keys that a ring starts with: from a seed or from the ring before. */
export interface InheritedKeys {
  readonly set: Keys;
  /** Since the start of the fetch that confirmed them. */
  readonly ageMs: number;
}

export interface KeySeedSettings {
  readonly cacheDirectory: string;
  /** Of the ring. A seed is used if it was written for one of them. */
  readonly issuers: readonly string[];
  /** See locationKey. Each location has its own seed. */
  readonly location: string;
  readonly algorithms: readonly string[];
  readonly readOnly: boolean;
  readonly maxAgeMs: number;
  readonly wallNow: () => number;
  /** Gets the problem of each load and of each write, undefined if there is none. */
  readonly onResult: (problem: string | undefined) => void;
}

// The set is a string in JSON, whose escapes can double it.
const maxSeedBytes = 2 * maxDocumentBytes + 16 * 1024;
// Older versions had the certificate authorities of their fetch.
const seedVersion = 5;

export function createKeySeed(settings: KeySeedSettings) {
  const { cacheDirectory, issuers, location, algorithms, readOnly, maxAgeMs, wallNow, onResult } = settings;
  const path = join(cacheDirectory, `${sha256(location)}.json`);
  let writing: Promise<void> = Promise.resolve();

  /** The keys, or why they are not used; undefined without a file. */
  async function read(): Promise<InheritedKeys | string | undefined> {
    const bytes = await readSeedFile(path);
    if (!(bytes instanceof Uint8Array)) return bytes;
    const json = parseStrictJson(bytes);
    if (json.kind === 'problem') return json.problem;
    const field = (name: string): unknown => memberOf(json.value, name);
    const [jwks, confirmedWallMs] = [field('jwks'), field('confirmedAt')];
    if (field('version') !== seedVersion || typeof jwks !== 'string') return 'not a seed';
    if (typeof confirmedWallMs !== 'number' || !Number.isSafeInteger(confirmedWallMs)) return 'not a seed';
    const isOurs = issuers.some(issuer => itemsOf(field('issuers')).includes(issuer));
    if (field('location') !== location || !isOurs) return 'of another issuer or source';
    if (field('digest') !== sha256(jwks)) return 'damaged';
    const ageMs = wallNow() - confirmedWallMs;
    if (ageMs < 0 || ageMs >= maxAgeMs) return ageMs < 0 ? 'from the future' : 'too old';
    const set = await parseKeySet(Buffer.from(jwks), algorithms);
    return set.kind === 'problem' ? set.problem : { set, ageMs };
  }

  async function write(jwks: string, confirmedAt: number): Promise<string | undefined> {
    try {
      await mkdir(cacheDirectory, { recursive: true, mode: 0o700 });
      // Reported while the issuer is up: the next start would not use the seed.
      if (isWritableByOthers(await stat(cacheDirectory))) return 'seed not written: folder writable by others';
      const seed = { version: seedVersion, issuers, location, confirmedAt, digest: sha256(jwks), jwks };
      await writeAtomically(path, JSON.stringify(seed));
      return undefined;
    } catch (error) {
      return `seed not written: ${errorCode(error)}`;
    }
  }

  return {
    /** The last seed if it may be used. Never rejects. */
    async load(): Promise<InheritedKeys | undefined> {
      const loaded = await read();
      if (typeof loaded !== 'string') return loaded;
      onResult(`seed not used: ${loaded}`);
      return undefined;
    },
    /** Written in the order of the calls. */
    save(keys: KeySet['publicJwks'], confirmedWallMs: number): void {
      if (readOnly) return;
      const jwks = JSON.stringify({ keys });
      writing = writing.then(async () => onResult(await write(jwks, Math.floor(confirmedWallMs))));
    },
    /** Resolves when all writes are done. Never rejects. */
    written: () => writing,
  };
}

/** The bytes, or why they cannot be used; undefined without a file. */
async function readSeedFile(path: string): Promise<Uint8Array | string | undefined> {
  try {
    if (isWritableByOthers(await stat(dirname(path)))) return 'folder writable by others';
    const stats = await lstat(path);
    if (!stats.isFile() || stats.size > maxSeedBytes) return 'not a seed';
    return isWritableByOthers(stats) ? 'writable by others' : await readFile(path);
  } catch (error) {
    const code = errorCode(error);
    return code === 'ENOENT' || code === 'ENOTDIR' ? undefined : `not readable: ${code}`;
  }
}

// A writer here chooses the keys that we trust. Allowed: this user, root, and the groups of this process, for which Kubernetes makes
// the files of a volume writable (`fsGroup`). In a sticky folder nobody can replace the file of another user.
function isWritableByOthers(stats: Stats): boolean {
  const { uid, gid, mode } = stats;
  if (uid !== 0 && uid !== process.geteuid?.()) return true;
  if (stats.isDirectory() && (mode & 0o1000) !== 0) return false;
  const ownGroups = [process.getegid?.(), ...(process.getgroups?.() ?? [])];
  return (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && !ownGroups.includes(gid));
}

async function writeAtomically(path: string, text: string): Promise<void> {
  const temporary = `${path}.${randomUUID()}.tmp`;
  try {
    await writeFile(temporary, text, { flag: 'wx', mode: 0o600, flush: true });
    await rename(temporary, path);
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
}

function sha256(text: string): string {
  return hash('sha256', text, 'hex');
}
