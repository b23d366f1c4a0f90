// account-authz as a contender: the built product, with the full configuration of an installation.
import { join } from 'node:path';
import { stringify } from 'yaml';
import { freePorts } from '../../lab/free-ports.ts';
import { testCertificate } from '../../lab/test-certificate.ts';
import type { WireRequest, WireTarget } from '../load/wire-client.ts';
import { type BenchLab, projectDirectory } from './lab.ts';
import { checkCallBlocks } from './requests.ts';
import { type ServerProcess, startServerProcess } from './server-process.ts';
import { audience, issuer } from './tokens.ts';

export interface Product extends ServerProcess {
  readonly target: WireTarget;
  /** The page of /metrics. */
  metrics(): Promise<string>;
}

export interface ProductOptions {
  /** The transport; default: plain TCP. */
  readonly over?: 'unix' | 'mtls';
  /** The checkout whose dist/ runs; default: this one. */
  readonly checkout?: string;
}

/** The policy, which the peers share. */
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

/** `known`: a request that must be allowed before the process counts as started. */
export async function startProduct(
  lab: BenchLab,
  known: WireRequest,
  { over, checkout = projectDirectory }: ProductOptions = {},
): Promise<Product> {
  const [port = 0, adminPort = 0] = await freePorts(2);
  const number = ++started;
  const { target, settings } = await listenFor(lab, number, port, over);
  const config = await lab.file(
    `account-authz-${number}.yaml`,
    stringify({
      ...productConfiguration(lab.issuer.jwksUrl),
      ...settings,
      admin: `127.0.0.1:${adminPort}`,
      cache: { maxTokens: 10_000 },
      log: { level: 'info', allowed: false }, // the peers log nothing
    }),
  );
  const main = join(checkout, 'dist', 'main.js');
  const { node: command, flags, environment } = lab.runtime;
  const server = await startServerProcess(
    { command, args: [...flags, main, 'serve', '--config', config], environment },
    lab.cores?.server,
    { target, shared: checkCallBlocks, request: known, expected: 'allow' },
  );
  return {
    ...server,
    target,
    metrics: async () => (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text(),
  };
}

const servername = 'account-authz.test';

async function listenFor(lab: BenchLab, number: number, port: number, over: ProductOptions['over']) {
  if (over === 'unix') {
    const socketPath = lab.path(`account-authz-${number}.sock`);
    return { target: { port, socketPath }, settings: { listen: `unix:${socketPath}` } };
  }
  const listen = `127.0.0.1:${port}`;
  if (over === undefined) return { target: { port }, settings: { listen } };
  const authority = testCertificate({ name: 'bench', isAuthority: true });
  const own = testCertificate({ name: 'account-authz', dnsNames: [servername], authority });
  const { cert, key } = testCertificate({ name: 'envoy', authority });
  const [certFile, keyFile, clientCaFile] = await Promise.all([
    lab.file(`tls-${number}.crt`, own.cert),
    lab.file(`tls-${number}.key`, own.key),
    lab.file(`ca-${number}.crt`, authority.cert),
  ]);
  return {
    target: { port, tls: { ca: authority.cert, cert, key, servername } },
    settings: { listen, tls: { certFile, keyFile, clientCaFile } },
  };
}

/** The value of a series without labels; NaN if absent. */
export function metric(page: string, name: string): number {
  const line = page.split('\n').find(each => each.startsWith(`${name} `));
  return line === undefined ? NaN : Number(line.slice(name.length + 1));
}
