// Encoded requests of the bench: a Check call with a CheckRequest of about 1.2 KB, or a client's request to Envoy.
import { checkMessage, grpcFrame } from '../load/check-message.ts';
import { ownBlock, sharedBlocks } from '../load/hpack.ts';
import type { WireRequest } from '../load/wire-client.ts';
import type { BenchToken } from './tokens.ts';

const client = {
  accept: 'application/json',
  'accept-encoding': 'gzip, deflate, br',
  traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
};

/** Headers that Envoy adds before the check. */
const ofEnvoy = {
  'x-envoy-external-address': '192.0.2.17',
  'x-forwarded-for': '192.0.2.17',
  'x-forwarded-proto': 'http',
  'x-request-id': 'f6901c2a-e110-471a-b4fb-49924b3b5993',
};

export function pathOf(account: string): string {
  return `/api/subscriptions/accounts/${account}/invoices`;
}

/** The headers of a Check call as an Envoy with the shipped envoy.yaml sends them; test/e2e/failures.test.ts compares. */
export const checkCallHeaders = [
  { name: ':method', value: 'POST' },
  { name: ':scheme', value: 'http' },
  { name: ':path', value: '/envoy.service.auth.v3.Authorization/Check' },
  { name: ':authority', value: 'account-authz' },
  { name: 'content-type', value: 'application/grpc' },
];

export const checkCallBlocks = sharedBlocks(checkCallHeaders);

const nothing = Buffer.alloc(0);
const startSeconds = Math.floor(Date.now() / 1000);

export interface CheckCallOptions {
  /** The addressed account; default: the token's own. */
  readonly account?: string;
  readonly method?: string;
  /** Path and query; `account` is then ignored. */
  readonly path?: string;
  /** Further headers, also pseudo-headers; an undefined one is left out. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  /** The request time; a peer may have no other clock. Default: the start of the bench. */
  readonly atSeconds?: number;
}

export function checkCall(
  token: BenchToken,
  {
    account = token.account,
    method = 'GET',
    path = pathOf(account),
    headers = {},
    atSeconds = startSeconds,
  }: CheckCallOptions = {},
): WireRequest {
  const authorization = `Bearer ${token.text}`;
  const sent = Object.entries({ ...client, ...ofEnvoy, authorization, ...headers }).filter(
    (line): line is [string, string] => line[1] !== undefined,
  );
  const message = checkMessage({ method, path, headers: Object.fromEntries(sent), atSeconds });
  return { before: nothing, after: nothing, body: grpcFrame(message) };
}

/** The headers that all client requests to Envoy share. */
export const clientBlocks = sharedBlocks([
  { name: ':method', value: 'GET' },
  { name: ':scheme', value: 'http' },
  { name: ':authority', value: 'api.example.com' },
  ...Object.entries(client).map(([name, value]) => ({ name, value })),
]);

export function clientRequest(token: BenchToken, account = token.account): WireRequest {
  return {
    before: ownBlock([{ name: ':path', value: pathOf(account) }]),
    after: ownBlock([{ name: 'authorization', value: `Bearer ${token.text}` }]),
    body: undefined,
  };
}
