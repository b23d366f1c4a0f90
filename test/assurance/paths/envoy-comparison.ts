// Sends targets through a real Envoy over raw sockets, with the product as authorizer and Express 5 as upstream.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { checkRequest } from '../../../lab/check-request.ts';
import { type RunningEnvoy, startEnvoy } from '../../../lab/envoy.ts';
import { createRawConnection, type HttpAnswer, http2Exchange, requestBytes } from '../../../lab/raw-http.ts';
import { startServiceLab } from '../../../lab/service.ts';
import { createRandom } from '../generator/random.ts';
import { readRequest } from '../oracle/request.ts';
import { routesOf } from '../oracle/request-path.ts';
import { settingsOf } from '../oracle/settings.ts';
import type { Layout } from './path-comparison.ts';
import { targetAccounts } from './path-comparison.ts';
import { generateTarget, type Target } from './targets.ts';
import { accountParameter, accountsOf, createApplication } from './upstreams.ts';

export interface EnvoyDifference {
  readonly seed: number;
  readonly number: number;
  readonly protocol: 'HTTP/1.1' | 'HTTP/2';
  readonly tricks: readonly string[];
  readonly target: string;
  readonly account: string;
  /** The target at the upstream, and the accounts of its handlers. */
  readonly served: Served;
}

interface Served {
  readonly url: string;
  readonly accounts: readonly string[];
  /** x-auth-acc. */
  readonly acc: string;
}

export interface EnvoyComparison {
  /** Requests that reached a handler, with and without an account. */
  readonly served: number;
  readonly servedForAccount: number;
  /** Served although the target was manipulated; and those of them that Envoy had normalized first. */
  readonly servedThoughTricky: number;
  readonly normalized: number;
  readonly refusedByProduct: number;
  /** Refused by Envoy itself, with or without an answer. */
  readonly refusedByEnvoy: number;
  readonly differences: readonly EnvoyDifference[];
}

export interface EnvoyComparisonOptions {
  readonly seed: number;
  readonly layout: Layout;
  /** Targets sent over HTTP/1.1. */
  readonly targets: number;
  /** Targets sent over HTTP/2, each on a new connection. */
  readonly http2Targets: number;
  readonly version: string;
}

const connections = 8;

export async function comparePathsThroughEnvoy(options: EnvoyComparisonOptions): Promise<EnvoyComparison> {
  const { layout, version } = options;
  const lab = await startServiceLab({
    config: {
      routes: layout.templates.map(path => ({ path })),
      account: { query: [accountParameter] },
      log: { level: 'silent' },
    },
  });
  const upstream = await startExpress(layout.templates);
  try {
    const envoy = await startEnvoy({
      version,
      upstream: upstream.port,
      authz: `127.0.0.1:${lab.service.ports.listen}`,
    });
    try {
      const tokens = new Map<string, string>();
      for (const acc of targetAccounts) tokens.set(acc, await lab.token({ claims: { acc } }));
      return await send(options, envoy, tokens);
    } finally {
      await envoy.stop();
    }
  } finally {
    await upstream.stop();
    await lab.stop();
  }
}

async function send(
  { seed, layout, targets, http2Targets }: EnvoyComparisonOptions,
  envoy: RunningEnvoy,
  tokens: ReadonlyMap<string, string>,
): Promise<EnvoyComparison> {
  const tally = {
    served: 0,
    servedForAccount: 0,
    servedThoughTricky: 0,
    normalized: 0,
    refusedByProduct: 0,
    refusedByEnvoy: 0,
  };
  const differences: EnvoyDifference[] = [];
  const names = namesOnlyThisAccount(layout);
  const judge = (number: number, protocol: EnvoyDifference['protocol'], target: Target, answer: HttpAnswer): void => {
    if (answer.status !== 200) {
      if (answer.body.startsWith('{')) tally.refusedByProduct += 1;
      else tally.refusedByEnvoy += 1;
      return;
    }
    const served: Served = JSON.parse(answer.body);
    const { account, tricks, text } = target;
    tally.served += 1;
    if (served.accounts.length > 0) tally.servedForAccount += 1;
    if (tricks.length > 0) tally.servedThoughTricky += 1;
    if (served.url !== text) tally.normalized += 1;
    const isOwn =
      served.acc === account && served.accounts.every(each => each === account) && names(served.url, account);
    if (!isOwn) differences.push({ seed, number, protocol, tricks, target: text, account, served });
  };

  const targetOf = (number: number): Target => generateTarget(createRandom(seed, number), layout.templates);
  const authorization = ({ account }: Target): string => `Bearer ${tokens.get(account) ?? ''}`;
  const numbers = Array.from({ length: targets }, (_, number) => number);
  const http1 = async (): Promise<void> => {
    const connection = createRawConnection(envoy.port);
    for (let number = numbers.shift(); number !== undefined; number = numbers.shift()) {
      const target = targetOf(number);
      const line = Buffer.from(target.text).toString('latin1');
      const bytes = requestBytes('GET', line, [`Authorization: ${authorization(target)}`]);
      judge(number, 'HTTP/1.1', target, await connection.exchange(bytes));
    }
    connection.close();
  };
  const http2Numbers = Array.from({ length: http2Targets }, (_, number) => number);
  const http2 = async (): Promise<void> => {
    for (let number = http2Numbers.shift(); number !== undefined; number = http2Numbers.shift()) {
      const target = targetOf(number);
      const headers = { ':path': target.text, authorization: authorization(target) };
      judge(number, 'HTTP/2', target, await http2Exchange(envoy.port, { headers }));
    }
  };
  await Promise.all([...Array.from({ length: connections }, http1), ...Array.from({ length: connections }, http2)]);
  return { ...tally, differences };
}

// The oracle judges again: a target that reached the upstream must be well-formed and name only the account of the token.
function namesOnlyThisAccount({ templates }: Layout): (url: string, account: string) => boolean {
  const settings = settingsOf({
    issuers: [],
    roles: {},
    routes: templates.map(path => ({ path })),
    account: { query: [accountParameter] },
  });
  return (url, account) => {
    const request = readRequest(checkRequest({ path: url }), settings);
    if ('kind' in request) return false;
    const routes = routesOf(request.segments, settings);
    const accounts = [...request.accounts, ...routes.flatMap(route => route.accounts)];
    return routes.length > 0 && accounts.every(each => each === account);
  };
}

async function startExpress(templates: readonly string[]): Promise<{ readonly port: number; stop(): Promise<void> }> {
  const app = createApplication(templates, () => (request, response) => {
    const served: Served = {
      url: request.originalUrl,
      accounts: accountsOf(request),
      acc: request.header('x-auth-acc') ?? '',
    };
    response.json(served);
  });
  const server = createServer(app).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
