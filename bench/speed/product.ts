// account-authz as a contender: the built product, with the whole configuration of an installation.
import { join } from 'node:path';
import { stringify } from 'yaml';
import { freePorts } from '../../test/support/envoy.ts';
import type { WireRequest } from '../load/wire-client.ts';
import type { Runtime } from './image-runtime.ts';
import { type BenchLab, projectDirectory } from './lab.ts';
import { checkCallBlocks } from './requests.ts';
import { type ServerProcess, startServerProcess } from './server-process.ts';
import { audience, issuer } from './tokens.ts';

export interface Product extends ServerProcess {
  readonly port: number;
  readonly adminPort: number;
  /** The page of /metrics. */
  metrics(): Promise<string>;
}

export interface ProductOptions {
  /** Whether allows are logged too; the peers log nothing. */
  readonly logAllowed?: boolean;
  readonly maxTokens?: number;
  /** More flags for its Node. */
  readonly flags?: readonly string[];
  /** The core of the servers if not given. */
  readonly core?: number | undefined;
  /** The Node of the lab and its flags if not given. */
  readonly runtime?: Runtime;
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
  {
    logAllowed = false,
    maxTokens = 10_000,
    flags = [],
    core = lab.cores?.server,
    runtime = { node: lab.node, flags: lab.nodeOptions, environment: {} },
  }: ProductOptions = {},
): Promise<Product> {
  const [port = 0, adminPort = 0] = await freePorts(2);
  const name = `account-authz-${++started}.yaml`;
  const config = await lab.file(
    name,
    stringify({
      ...productConfiguration(lab.issuer.jwksUrl),
      listen: `127.0.0.1:${port}`,
      admin: `127.0.0.1:${adminPort}`,
      cache: { maxTokens },
      log: { level: 'info', allowed: logAllowed },
    }),
  );
  const main = join(projectDirectory, 'dist', 'main.js');
  const server = await startServerProcess(
    {
      command: runtime.node,
      args: [...runtime.flags, ...flags, main, 'serve', '--config', config],
      environment: runtime.environment,
    },
    core,
    { target: { port }, shared: checkCallBlocks, request: known, expected: 'allow' },
  );
  return {
    ...server,
    port,
    adminPort,
    metrics: async () => (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text(),
  };
}

/** The sum of all series of this name whose labels include the text; 0 where there is none. */
export function metric(page: string, name: string, labels = ''): number {
  return page
    .split('\n')
    .filter(line => line.startsWith(`${name} `) || (line.startsWith(`${name}{`) && line.includes(labels)))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}
