// account-authz as a contender: the built product, with the whole configuration of an installation.
import { join } from 'node:path';
import { stringify } from 'yaml';
import { freePorts } from '../../test/support/envoy.ts';
import type { WireRequest } from '../load/wire-client.ts';
import { type BenchLab, projectDirectory } from './lab.ts';
import { checkCallBlocks } from './requests.ts';
import { type ServerProcess, startServerProcess } from './server-process.ts';
import { audience, issuer } from './tokens.ts';

export interface Product extends ServerProcess {
  readonly port: number;
  /** The page of /metrics. */
  metrics(): Promise<string>;
}

export interface ProductOptions {
  /** Whether allows are logged too; the peers log nothing. */
  readonly logAllowed?: boolean;
}

/** What decides over a request: the peers are to decide the same. */
export function productConfiguration(jwksUrl: string) {
  return {
    issuers: [{ issuer, audiences: [audience], jwksUrl }],
    routes: [
      { path: '/api/subscriptions/*' },
      { path: '/api/subscriptions/accounts/:account_id/*' },
      { path: '/api/subscriptions/accounts/:account_id/billing/*', roles: ['owner', 'admin'] },
    ],
    account: { headers: ['x-account-id'], query: ['account_id'] },
    roles: {
      owner: ['*'],
      admin: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
      member: ['GET', 'HEAD'],
    },
  };
}

let started = 0;

/** `known`: the request that it has to allow before it counts as started. */
export async function startProduct(
  lab: BenchLab,
  known: WireRequest,
  { logAllowed = false }: ProductOptions = {},
): Promise<Product> {
  const [port = 0, adminPort = 0] = await freePorts(2);
  const name = `account-authz-${++started}.yaml`;
  const config = await lab.file(
    name,
    stringify({
      ...productConfiguration(lab.issuer.jwksUrl),
      listen: `127.0.0.1:${port}`,
      admin: `127.0.0.1:${adminPort}`,
      cache: { maxTokens: 10_000 },
      log: { level: 'info', allowed: logAllowed },
    }),
  );
  const main = join(projectDirectory, 'dist', 'main.js');
  const { node: command, flags, environment } = lab.runtime;
  const server = await startServerProcess(
    { command, args: [...flags, main, 'serve', '--config', config], environment },
    lab.cores?.server,
    { target: { port }, shared: checkCallBlocks, request: known, expected: 'allow' },
  );
  return {
    ...server,
    port,
    metrics: async () => (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text(),
  };
}

/** The value of a series without labels; NaN where there is none. */
export function metric(page: string, name: string): number {
  const line = page.split('\n').find(each => each.startsWith(`${name} `));
  return line === undefined ? NaN : Number(line.slice(name.length + 1));
}
