// Stores the last good key set of a ring on disk, for a start while its issuers are down. It is bound to the issuers and to the location of
// the keys, written atomically, and parsed as strictly as an answer from the network. Its age is by the wall clock, which spans a restart.
import { hash, randomUUID } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { mkdir, open, rename, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { memberOf, parseStrictJson } from '../json/strict-json.ts';
import { errorCode, type Problem } from '../text/problem.ts';
import { maxKeySetBytes, parseKeySet, type VerificationKey } from './jwks.ts';
import { type Authorities, hasAll } from './key-authorities.ts';
import type { PublicJwk } from './key-material.ts';

/** Keys that a ring starts with: from a seed or from the ring before. */
export interface InheritedKeys {
  readonly keys: ReadonlyMap<string, VerificationKey>;
  /** Since the start of the fetch that confirmed them. */
  readonly ageMs: number;
  /** Those of caFile when that fetch began. */
  readonly authorities: Authorities;
}

export interface KeySeedSettings {
  /** Undefined: no seed. */
  readonly cacheDirectory: string | undefined;
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

export interface KeySeed {
  /** The last seed if it may be used. `trusted` are the authorities of caFile now. Never rejects. */
  load(trusted: Authorities | Problem): Promise<InheritedKeys | undefined>;
  /** Written and removed in the order of the calls. */
  save(publicJwks: readonly PublicJwk[], authorities: Authorities, confirmedWallMs: number): void;
  remove(): void;
  /** Resolves when all writes are done. Never rejects. */
  written(): Promise<void>;
}

// The set is a string in JSON, whose escapes can double it.
const maxSeedBytes = 2 * maxKeySetBytes + 16 * 1024;
// Older versions had a seed for each issuer.
const seedVersion = 4;

export function createKeySeed(settings: KeySeedSettings): KeySeed {
  const { cacheDirectory, issuers, location, algorithms, readOnly, maxAgeMs, wallNow, onResult } = settings;
  const path = cacheDirectory === undefined ? undefined : join(cacheDirectory, `${sha256([location])}.json`);
  let writing: Promise<void> = Promise.resolve();

  /** The keys, or why they are not used; undefined without a file. */
  async function read(file: string, trusted: Authorities | Problem): Promise<InheritedKeys | string | undefined> {
    const bytes = await readSeedFile(file);
    if (!(bytes instanceof Uint8Array)) return bytes;
    const json = parseStrictJson(bytes);
    if (json.kind === 'problem') return json.problem;
    const field = (name: string): unknown => memberOf(json.value, name);
    const jwks = field('jwks');
    const authorities = field('authorities');
    const owners = field('issuers');
    const confirmedWallMs = field('confirmedAt');
    if (field('version') !== seedVersion || typeof jwks !== 'string') return 'not a seed';
    if (!isListOfText(authorities) || !isListOfText(owners)) return 'not a seed';
    if (typeof confirmedWallMs !== 'number' || !Number.isSafeInteger(confirmedWallMs)) return 'not a seed';
    if (field('location') !== location || !owners.some(owner => issuers.includes(owner)))
      return 'of another issuer or source';
    if (field('digest') !== sha256([jwks, authorities])) return 'damaged';
    if ('kind' in trusted || !hasAll(trusted, authorities))
      return 'fetched under an authority that is not trusted any more';
    const ageMs = wallNow() - confirmedWallMs;
    if (ageMs < 0 || ageMs >= maxAgeMs) return ageMs < 0 ? 'from the future' : 'too old';
    const keySet = await parseKeySet(Buffer.from(jwks), algorithms);
    return keySet.kind === 'problem' ? keySet.problem : { keys: keySet.keys, ageMs, authorities };
  }

  function write(change: (folder: string, file: string) => Promise<string | undefined>): void {
    if (cacheDirectory === undefined || path === undefined || readOnly) return;
    writing = writing.then(async () => onResult(await change(cacheDirectory, path)));
  }

  return {
    async load(trusted) {
      const loaded = path === undefined ? undefined : await read(path, trusted);
      if (typeof loaded !== 'string') return loaded;
      onResult(`seed not used: ${loaded}`);
      return undefined;
    },
    save: (keys, authorities, confirmedWallMs) =>
      write(async (folder, file) => {
        const jwks = JSON.stringify({ keys });
        const confirmedAt = Math.floor(confirmedWallMs);
        const digest = sha256([jwks, authorities]);
        const seed = { version: seedVersion, issuers, location, confirmedAt, authorities, digest, jwks };
        try {
          await mkdir(folder, { recursive: true, mode: 0o700 });
          // Reported while the issuer is up: the next start would not use the seed.
          if (isWritableByOthers(await stat(folder))) return 'seed not written: folder writable by others';
          await writeAtomically(file, JSON.stringify(seed));
          return undefined;
        } catch (error) {
          return `seed not written: ${errorCode(error)}`;
        }
      }),
    remove: () =>
      write(async (_, file) => {
        try {
          await unlink(file);
          return undefined;
        } catch (error) {
          return errorCode(error) === 'ENOENT' ? undefined : `seed not removed: ${errorCode(error)}`;
        }
      }),
    written: () => writing,
  };
}

/** The bytes, or why they cannot be used; undefined without a file. */
async function readSeedFile(path: string): Promise<Uint8Array | string | undefined> {
  try {
    if (isWritableByOthers(await stat(dirname(path)))) return 'folder writable by others';
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const stats = await file.stat();
      if (!stats.isFile() || stats.size > maxSeedBytes) return 'not a seed';
      if (isWritableByOthers(stats)) return 'writable by others';
      return await file.readFile();
    } finally {
      await file.close();
    }
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
    const file = await open(temporary, 'wx', 0o600);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
}

function isListOfText(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every(each => typeof each === 'string');
}

function sha256(values: readonly unknown[]): string {
  return hash('sha256', JSON.stringify(values), 'hex');
}
