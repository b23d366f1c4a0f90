// What the bench sends: RS256 tokens of distinct accounts, and Check calls of about 1.4 KB as Envoy 1.40 sends them.
import {
  createHash,
  sign as cryptoSign,
  generateKeyPair,
  type JsonWebKey,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import { promisify } from 'node:util';
import protobuf from 'protobufjs/minimal.js';

export const issuer = 'https://auth.example.com';
export const audience = 'https://api.example.com/subscriptions';

export interface Tokens {
  readonly publicJwk: JsonWebKey & { readonly kid: string };
  readonly publicPem: string;
  /** Valid, each for an account of its own. */
  readonly good: readonly BenchToken[];
  /** The same with 180 accounts in each: 7 KB, about the largest that is accepted. */
  readonly large: readonly BenchToken[];
  /** The first of them with a signature that nobody made. */
  readonly forged: BenchToken;
}

export interface BenchToken {
  readonly account: string;
  readonly text: string;
}

const signed = promisify(cryptoSign) as (hash: string, data: Buffer, key: KeyObject) => Promise<Buffer>;

export async function createTokens(count: number, largeCount: number): Promise<Tokens> {
  const { publicKey, privateKey } = await promisify(generateKeyPair)('rsa', { modulusLength: 2048 });
  const publicPem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
  const kid = createHash('sha256').update(publicPem).digest('base64url').slice(0, 16);
  const issuedAt = Math.floor(Date.now() / 1000) - 60;
  const inputOf = (account: string, acc: unknown): string =>
    `${segment({ alg: 'RS256', typ: 'JWT', kid })}.${segment({ ...claimsOf(account, issuedAt), acc })}`;
  // Node's thread pool signs on all cores; in batches, so that the queue stays short.
  const tokensOf = async (number: number, accOf: (account: string) => unknown): Promise<BenchToken[]> => {
    const tokens: BenchToken[] = [];
    while (tokens.length < number) {
      const numbers = Array.from({ length: Math.min(256, number - tokens.length) }, (_, i) => tokens.length + i);
      const made = numbers.map(async each => {
        const account = `acct-${String(each).padStart(6, '0')}`;
        const input = inputOf(account, accOf(account));
        const signature = await signed('sha256', Buffer.from(input), privateKey);
        return { account, text: `${input}.${signature.toString('base64url')}` };
      });
      tokens.push(...(await Promise.all(made)));
    }
    return tokens;
  };
  const good = await tokensOf(count, account => account);
  const large = await tokensOf(largeCount, account => [
    account,
    ...Array.from({ length: 179 }, (_, i) => `${account}-of-the-group-${100 + i}`),
  ]);
  const [{ account } = { account: '' }] = good;
  const forged = { account, text: `${inputOf(account, account)}.${randomBytes(256).toString('base64url')}` };
  const publicJwk = { ...publicKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' };
  return { publicJwk, publicPem, good, large, forged };
}

// Of one length for all accounts, and so are the answers: the generator compares lengths.
function claimsOf(account: string, iat: number): Readonly<Record<string, unknown>> {
  const user = `user-${account}`;
  const jti = `8c1f9d2e-0b7a-4f6c-9a51-${account}`;
  const [iss, aud] = [issuer, audience];
  return { iss, aud, iat, exp: iat + 12 * 3600, jti, sub: user, uid: user, app: 'web', role: 'member' };
}

function segment(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

export const clientHeaders = {
  accept: 'application/json',
  'accept-encoding': 'gzip, deflate, br',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
};
const ofEnvoy = {
  'x-envoy-external-address': '192.0.2.17',
  'x-forwarded-for': '192.0.2.17',
  'x-forwarded-proto': 'http',
  'x-request-id': 'f6901c2a-e110-471a-b4fb-49924b3b5993',
};
export const host = 'api.example.com';
export const pathOf = (account: string): string => `/api/subscriptions/accounts/${account}/invoices`;

export const checkPath = '/envoy.service.auth.v3.Authorization/Check';

/** A framed CheckRequest, with fields of Envoy that proto/ leaves out. `account` is the addressed one; default: the token's own. */
export function checkCall(token: BenchToken, account = token.account): Buffer {
  const [method, path] = ['GET', pathOf(account)];
  const lines = Object.entries({
    ':authority': host,
    ':method': method,
    ':path': path,
    ':scheme': 'http',
    ...clientHeaders,
    ...ofEnvoy,
    authorization: `Bearer ${token.text}`,
  });
  // Field numbers of envoy/service/auth/v3/attribute_context.proto and envoy/config/core/v3/address.proto.
  const http = message(writer => {
    text(text(writer, 1, '3755588983843614144'), 2, method);
    for (const [name, value] of lines) part(writer, 3, entry => text(text(entry, 1, name), 2, value));
    text(text(text(text(writer, 4, path), 5, host), 6, 'http'), 10, 'HTTP/1.1');
  });
  const seconds = Math.floor(Date.now() / 1000);
  const bytes = message(writer =>
    part(writer, 1, attributes => {
      part(attributes, 1, peer => peerAddress(peer, '192.0.2.17', 41_576));
      part(attributes, 2, peer => peerAddress(peer, '198.51.100.4', 8080));
      part(attributes, 4, request => {
        part(request, 1, time => time.uint32(8).int64(seconds).uint32(16).int32(560_506_000));
        request.uint32(tag(2)).bytes(http);
      });
      attributes.uint32(tag(11)).bytes(Buffer.alloc(0)).uint32(tag(13)).bytes(Buffer.alloc(0));
    }),
  );
  const frame = Buffer.alloc(5 + bytes.length);
  frame.writeUInt32BE(bytes.length, 1);
  frame.set(bytes, 5);
  return frame;
}

/** A length-delimited field. */
const tag = (number: number): number => (number << 3) | 2;

function message(write: (writer: protobuf.Writer) => unknown): Uint8Array {
  const writer = protobuf.Writer.create();
  write(writer);
  return writer.finish();
}

function part(writer: protobuf.Writer, number: number, write: (writer: protobuf.Writer) => unknown): protobuf.Writer {
  return writer.uint32(tag(number)).bytes(message(write));
}

function text(writer: protobuf.Writer, number: number, value: string): protobuf.Writer {
  return writer.uint32(tag(number)).string(value);
}

function peerAddress(writer: protobuf.Writer, address: string, port: number): protobuf.Writer {
  return part(writer, 1, inner => part(inner, 1, socket => text(socket, 2, address).uint32(24).uint32(port)));
}
