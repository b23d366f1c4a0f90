// The tokens of a bench: one RSA key, a pool of valid tokens for distinct accounts, and every kind of invalid token.
import {
  createHash,
  createHmac,
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

/** An undefined member is left out. */
export interface TokenChanges {
  readonly header?: Readonly<Record<string, unknown>>;
  readonly claims?: Readonly<Record<string, unknown>>;
  /** Default: the right key with SHA-256. */
  readonly signature?: 'right key, SHA-512' | 'none' | 'HMAC with the public key';
}

export interface Tokens {
  readonly algorithm: Algorithm;
  readonly publicJwk: JsonWebKey & { readonly kid: string; readonly alg: string; readonly use: string };
  /** Distinct and valid; generated on demand, the same ones each time. */
  good(from: number, count: number): Promise<readonly BenchToken[]>;
  /** Valid and never returned before in this process. */
  fresh(count: number): Promise<readonly BenchToken[]>;
  /** The first valid token with other members. */
  changed(changes: TokenChanges): Promise<BenchToken>;
  expired(): Promise<BenchToken>;
  /** A valid token's header and payload with a random signature of the right length. */
  forged(count: number): readonly BenchToken[];
  /** Text of a token's length that is not one. */
  garbage(count: number): readonly BenchToken[];
}

const lifetimeSeconds = 12 * 3600;
/** A pool on disk with less lifetime left is generated anew. */
const minRemainingSeconds = 3 * 3600;

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
  const headerMembers = { alg: algorithm, typ: 'JWT', kid };
  const header = segment(headerMembers);
  const make = async (number: number, changes: object = {}): Promise<string> => {
    const input = `${header}.${segment({ ...claims(number, pool.issuedAt), ...changes })}`;
    return `${input}.${await signature('sha256', privateKey, input)}`;
  };
  const changedSignature = async (kind: TokenChanges['signature'], input: string): Promise<string> => {
    switch (kind) {
      case undefined:
        return signature('sha256', privateKey, input);
      case 'right key, SHA-512':
        return signature('sha512', privateKey, input);
      case 'none':
        return '';
      case 'HMAC with the public key': {
        const secret = createPublicKey(privateKey).export({ type: 'spki', format: 'pem' });
        return createHmac('sha256', secret).update(input).digest('base64url');
      }
    }
  };

  // A separate range of numbers from the pool's.
  let nextFresh = 1_000_000;
  return {
    algorithm,
    publicJwk,
    async good(from, count) {
      const end = from + count;
      if (pool.texts.length < end) {
        // Node's thread pool signs on all cores; in batches, so that the queue stays short.
        for (let at = pool.texts.length; at < end; at += 256) {
          const numbers = Array.from({ length: Math.min(256, end - at) }, (_, index) => at + index);
          pool.texts.push(...(await Promise.all(numbers.map(number => make(number)))));
        }
        await mkdir(cacheDirectory, { recursive: true });
        // Atomic rename: another bench may read the file meanwhile.
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
    async changed({ header = {}, claims: changes = {}, signature }) {
      const payload = { ...claims(0, pool.issuedAt), ...changes };
      const input = `${segment({ ...headerMembers, ...header })}.${segment(payload)}`;
      return { account: accountOf(0), text: `${input}.${await changedSignature(signature, input)}` };
    },
    expired: async () => ({
      account: accountOf(0),
      text: await make(0, { iat: pool.issuedAt - 7200, exp: pool.issuedAt - 3600 }),
    }),
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

async function signature(hash: string, key: KeyObject, input: string): Promise<string> {
  const bytes = await signWith(hash, Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' });
  return bytes.toString('base64url');
}

async function readPool(file: string, nowSeconds: number): Promise<Pool | undefined> {
  try {
    const pool = JSON.parse(await readFile(file, 'utf8')) as Pool;
    return pool.issuedAt + lifetimeSeconds - nowSeconds < minRemainingSeconds ? undefined : pool;
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
