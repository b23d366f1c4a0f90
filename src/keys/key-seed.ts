// Stores the last good key set of one issuer on disk, for a start while the issuer is down. It is bound to issuer and source, written
// atomically, and parsed as strictly as an answer from the network. Its age is by the wall clock, which spans a restart.
import { createHash, randomUUID } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { mkdir, open, rename, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { isJsonObject, parseStrictJson } from '../json/strict-json.ts';
import { errorCode, type Problem, problem } from '../text/problem.ts';
import { type KeySet, maxKeySetBytes, parseKeySet } from './jwks.ts';
import type { Authorities } from './key-authorities.ts';
import type { PublicJwk } from './key-material.ts';

export interface KeySeedSettings {
  readonly cacheDirectory: string;
  readonly issuer: string;
  /** Kind and place of the source. Each source has its own seed. */
  readonly source: string;
  readonly algorithms: readonly string[];
}

type LoadedSeed =
  | {
      readonly kind: 'seed';
      readonly keySet: KeySet;
      readonly authorities: Authorities;
      readonly confirmedWallMs: number;
    }
  | { readonly kind: 'none' }
  | Problem;

export interface KeySeed {
  /** The last seed, of any age. Never rejects. */
  load(): Promise<LoadedSeed>;
  /** Resolves to the problem, if any. Never rejects. */
  save(keys: readonly PublicJwk[], authorities: Authorities, confirmedWallMs: number): Promise<string | undefined>;
  /** Resolves to the problem, if any. Never rejects. */
  remove(): Promise<string | undefined>;
}

// The set is a string in JSON, whose escapes can double it.
const maxSeedBytes = 2 * maxKeySetBytes + 16 * 1024;
// Versions 1 and 2 did not have the authorities of caFile.
const seedVersion = 3;

export function createKeySeed(settings: KeySeedSettings): KeySeed {
  const { cacheDirectory, issuer, source, algorithms } = settings;
  const path = join(cacheDirectory, `${sha256([issuer, source])}.json`);
  return {
    async load() {
      const bytes = await readSeedFile(path);
      if (!(bytes instanceof Uint8Array)) return bytes;
      const json = parseStrictJson(bytes);
      if (json.kind === 'problem') return unused(json.problem);
      if (!isJsonObject(json.value)) return unused('not a seed');
      const fields = new Map(Object.entries(json.value));
      const confirmedWallMs = fields.get('confirmedAt');
      const jwks = fields.get('jwks');
      const authorities = fields.get('authorities');
      if (fields.get('version') !== seedVersion || typeof jwks !== 'string') return unused('not a seed');
      if (!isListOfText(authorities)) return unused('not a seed');
      if (typeof confirmedWallMs !== 'number' || !Number.isSafeInteger(confirmedWallMs)) return unused('not a seed');
      if (fields.get('issuer') !== issuer || fields.get('source') !== source)
        return unused('of another issuer or source');
      if (fields.get('digest') !== sha256([jwks, authorities])) return unused('damaged');
      const keySet = await parseKeySet(Buffer.from(jwks), algorithms);
      return keySet.kind === 'problem'
        ? unused(keySet.problem)
        : { kind: 'seed', keySet, authorities, confirmedWallMs };
    },
    async save(keys, authorities, confirmedWallMs) {
      const jwks = JSON.stringify({ keys });
      const confirmedAt = Math.floor(confirmedWallMs);
      const digest = sha256([jwks, authorities]);
      const seed = { version: seedVersion, issuer, source, confirmedAt, authorities, digest, jwks };
      try {
        await mkdir(cacheDirectory, { recursive: true, mode: 0o700 });
        // Reported while the issuer is up: the next start would not use the seed.
        if (isWritableByOthers(await stat(cacheDirectory))) return 'seed not written: folder writable by others';
        await writeAtomically(path, JSON.stringify(seed));
        return undefined;
      } catch (error) {
        return `seed not written: ${errorCode(error)}`;
      }
    },
    async remove() {
      try {
        await unlink(path);
        return undefined;
      } catch (error) {
        return errorCode(error) === 'ENOENT' ? undefined : `seed not removed: ${errorCode(error)}`;
      }
    },
  };
}

async function readSeedFile(path: string): Promise<Uint8Array | LoadedSeed> {
  try {
    if (isWritableByOthers(await stat(dirname(path)))) return unused('folder writable by others');
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const stats = await file.stat();
      if (!stats.isFile() || stats.size > maxSeedBytes) return unused('not a seed');
      if (isWritableByOthers(stats)) return unused('writable by others');
      return await file.readFile();
    } finally {
      await file.close();
    }
  } catch (error) {
    const code = errorCode(error);
    return code === 'ENOENT' || code === 'ENOTDIR' ? { kind: 'none' } : unused(`not readable: ${code}`);
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
  return createHash('sha256').update(JSON.stringify(values)).digest('hex');
}

function unused(word: string): Problem {
  return problem(`seed not used: ${word}`);
}
