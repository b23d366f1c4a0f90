// The tokens of a bench: one RSA key, a pool of good tokens for an account each, and every kind of token that is to be refused.
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  sign as cryptoSign,
  generateKeyPair,
  type JsonWebKey,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

export const issuer = 'https://auth.example.com';
export const audience = 'https://api.example.com/subscriptions';

export type Algorithm = 'RS256' | 'ES256';

export interface BenchToken {
  readonly account: string;
  readonly text: string;
}

export interface Tokens {
  readonly algorithm: Algorithm;
  readonly publicJwk: JsonWebKey & { readonly kid: string; readonly alg: string; readonly use: string };
  /** Distinct and good; made when they are asked for, the same ones each time. */
  good(from: number, count: number): Promise<readonly BenchToken[]>;
  /** Good, and never made before in this process. */
  fresh(count: number): Promise<readonly BenchToken[]>;
  expired(): Promise<BenchToken>;
  foreignAudience(): Promise<BenchToken>;
  /** A good token's header and payload, and a signature of the right length that nobody made. */
  forged(count: number): readonly BenchToken[];
  /** As long as a token and none. */
  garbage(count: number): readonly BenchToken[];
}

const lifetimeSeconds = 12 * 3600;
/** A pool on the disk that lives for less than this is made anew. */
const leastSeconds = 3 * 3600;

interface Pool {
  readonly privateKey: string;
  readonly issuedAt: number;
  readonly texts: string[];
}

export async function createTokens(algorithm: Algorithm, cacheDirectory: string): Promise<Tokens> {
  const file = join(cacheDirectory, `tokens-${algorithm}.json`);
  const nowSeconds = Math.floor(Date.now() / 1000);
  const pool = (await readPool(file, nowSeconds)) ?? (await newPool(algorithm, nowSeconds));
  const privateKey = createPrivateKey(pool.privateKey);
  const kid = createHash('sha256').update(pool.privateKey).digest('base64url').slice(0, 16);
  const publicJwk = { ...createPublicKey(privateKey).export({ format: 'jwk' }), kid, alg: algorithm, use: 'sig' };
  const header = segment({ alg: algorithm, typ: 'JWT', kid });
  const make = async (number: number, changes: object = {}): Promise<string> => {
    const input = `${header}.${segment({ ...claims(number, pool.issuedAt), ...changes })}`;
    return `${input}.${await signature(privateKey, input)}`;
  };

  // Apart from the numbers of the pool.
  let nextFresh = 1_000_000;
  return {
    algorithm,
    publicJwk,
    async good(from, count) {
      const end = from + count;
      if (pool.texts.length < end) {
        // The thread pool of Node signs on all cores; a batch at a time, so that the queue stays short.
        for (let at = pool.texts.length; at < end; at += 256) {
          const numbers = Array.from({ length: Math.min(256, end - at) }, (_, index) => at + index);
          pool.texts.push(...(await Promise.all(numbers.map(number => make(number)))));
        }
        await mkdir(cacheDirectory, { recursive: true });
        // Whole or not at all: another bench may read it meanwhile.
        await writeFile(`${file}.${process.pid}`, JSON.stringify(pool), { mode: 0o600 });
        await rename(`${file}.${process.pid}`, file);
      }
      return pool.texts.slice(from, end).map((text, index) => ({ account: accountOf(from + index), text }));
    },
    fresh(count) {
      const from = nextFresh;
      nextFresh += count;
      const issuedAt = Math.floor(Date.now() / 1000) - 1;
      const numbers = Array.from({ length: count }, (_, index) => from + index);
      return Promise.all(
        numbers.map(async number => ({
          account: accountOf(number),
          text: await make(number, { iat: issuedAt, exp: issuedAt + lifetimeSeconds }),
        })),
      );
    },
    expired: async () => ({
      account: accountOf(0),
      text: await make(0, { iat: pool.issuedAt - 7200, exp: pool.issuedAt - 3600 }),
    }),
    foreignAudience: async () => ({ account: accountOf(0), text: await make(0, { aud: 'https://other.example.com' }) }),
    forged: count =>
      Array.from({ length: count }, (_, number) => ({
        account: accountOf(number),
        text: `${header}.${segment(claims(number, pool.issuedAt))}.${randomBytes(algorithm === 'RS256' ? 256 : 64).toString('base64url')}`,
      })),
    garbage: count =>
      Array.from({ length: count }, (_, number) => ({
        account: accountOf(number),
        text: randomBytes(510).toString('base64url'),
      })),
  };
}

function claims(number: number, issuedAt: number): Readonly<Record<string, unknown>> {
  return {
    iss: issuer,
    aud: audience,
    iat: issuedAt,
    exp: issuedAt + lifetimeSeconds,
    jti: `8c1f9d2e-0b7a-4f6c-9a51-${String(number).padStart(12, '0')}`,
    sub: `user-${number}`,
    uid: `user-${number}`,
    app: 'web',
    acc: accountOf(number),
    role: 'member',
  };
}

function accountOf(number: number): string {
  return `acct-${String(number).padStart(6, '0')}`;
}

function segment(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

const signWith = promisify(cryptoSign) as (
  hash: string,
  data: Buffer,
  key: { key: KeyObject; dsaEncoding: 'ieee-p1363' },
) => Promise<Buffer>;

async function signature(key: KeyObject, input: string): Promise<string> {
  const bytes = await signWith('sha256', Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' });
  return bytes.toString('base64url');
}

async function readPool(file: string, nowSeconds: number): Promise<Pool | undefined> {
  try {
    const pool = JSON.parse(await readFile(file, 'utf8')) as Pool;
    return pool.issuedAt + lifetimeSeconds - nowSeconds < leastSeconds ? undefined : pool;
  } catch {
    return undefined;
  }
}

async function newPool(algorithm: Algorithm, nowSeconds: number): Promise<Pool> {
  const { privateKey } =
    algorithm === 'RS256'
      ? await promisify(generateKeyPair)('rsa', { modulusLength: 2048 })
      : await promisify(generateKeyPair)('ec', { namedCurve: 'P-256' });
  const issuedAt = nowSeconds - 60;
  return { privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), issuedAt, texts: [] };
}
