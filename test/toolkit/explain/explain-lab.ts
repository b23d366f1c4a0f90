// The service and `explain` side by side: the same configuration, the same issuer and the same requests.
import { expect } from 'chai';
import { checkRequest } from '../../../lab/check-request.ts';
import { type CommandOptions, type Outcome, runCommand } from '../../../lab/command.ts';
import { writeFixture } from '../../../lab/config-file.ts';
import { freePorts } from '../../../lab/free-ports.ts';
import { secrets } from '../../../lab/secrets.ts';
import { connect, currentToken, type LogLine, serviceConfig, startTestService } from '../../../lab/service.ts';
import { signingKey } from '../../../lab/signing-key.ts';
import { startTestIssuer } from '../../../lab/test-issuer.ts';
import { audience, type TokenParts } from '../../../lab/token.ts';
import { until } from '../../../lab/until.ts';
import type { Explanation } from '../../../src/toolkit/explain/explanation.ts';

export function runExplain(args: readonly string[], options: CommandOptions = {}): Promise<Outcome> {
  return runCommand('explain', args, options);
}

/** The explanation that was printed with --json. */
export function explanationOf({ stdout, stderr }: Outcome): Explanation {
  expect(stderr).to.equal('');
  return JSON.parse(stdout) as Explanation;
}

/** The check that failed, or `passed`. */
export function failedCheck({ checks }: Pick<Explanation, 'checks'>): string {
  return checks.find(({ verdict }) => verdict === 'fail')?.name ?? 'passed';
}

export interface ExplainedCase {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: readonly (readonly [name: string, value: string])[];
  /** The value of Authorization; undefined for a request without it. */
  readonly authorization: string | undefined;
}

export type ExplainLab = Awaited<ReturnType<typeof startExplainLab>>;

/** An issuer whose role claim has a name with a dot. */
export const dottedIssuer = 'https://dotted.test';

const path = '/api/subscriptions/accounts/acct1';

export async function startExplainLab() {
  const keys = [await signingKey('k1'), await signingKey('r1', 'RS256')];
  const issuer = await startTestIssuer({ keys: keys.map(({ publicJwk }) => publicJwk) });
  const [unusedPort] = await freePorts(1);
  const unreachableIssuer = 'https://unreachable.test';
  const config = serviceConfig(issuer, {
    issuers: [
      { issuer: issuer.url, audiences: [audience, 'https://other.test'], jwksUrl: issuer.jwksUrl },
      {
        issuer: dottedIssuer,
        audiences: [audience],
        jwksUrl: issuer.jwksUrl,
        claims: { acc: 'https://acct.test/acc', role: 'realm_access.roles' },
      },
      { issuer: unreachableIssuer, audiences: [audience], jwksUrl: `http://127.0.0.1:${unusedPort}/jwks.json` },
    ],
    routes: [
      { path: '/api/subscriptions/accounts/:account_id/*' },
      { path: '/api/subscriptions/:kind/:account_id/members', roles: ['owner'] },
      { path: '/api/subscriptions/plans' },
    ],
    account: { headers: ['x-account-id'], query: ['account_id'] },
    public: [{ path: '/assets/*', characters: 'rfc3986' }],
    roles: {
      owner: ['*'],
      member: ['GET', 'HEAD'],
      poster: { methods: ['POST /api/subscriptions/accounts/:account_id/comments/*'], names: ['Site Poster'] },
    },
    apps: ['web'],
    token: { maxBytes: 4096 },
    revocation: { file: writeFixture('explain-revoked.jsonl', '{"jti":"stolen","app":"web"}\n{"uid":"gone"}\n') },
  });
  const configFile = writeFixture('explain.json', config);
  const log: LogLine[] = [];
  const write = (line: string): void => {
    secrets.show('log', line);
    log.push(JSON.parse(line) as LogLine);
  };
  const service = await startTestService(config, write);
  const client = connect(`127.0.0.1:${service.ports.listen}`);
  const readiness = `http://127.0.0.1:${service.ports.admin}/readyz`;
  await until(async () => (await fetch(readiness)).ok);
  let requests = 0;
  return {
    issuer,
    unreachableIssuer,
    configFile,
    token: (parts: TokenParts = {}) => currentToken(issuer.url, parts),
    /** The answer of the service, and its log line. */
    async ask(request: ExplainedCase) {
      requests += 1;
      const requestId = `case-${requests}`;
      const headers: Record<string, string[]> = { 'x-request-id': [requestId] };
      for (const [name, value] of request.headers ?? []) headers[name] = [...(headers[name] ?? []), value];
      if (request.authorization !== undefined) headers.authorization = [request.authorization];
      const message = checkRequest({ method: request.method ?? 'GET', path: request.path ?? path, headers, raw: true });
      const { denied_response, ok_response, dynamic_metadata } = await client.check(message);
      const words = dynamic_metadata?.fields ?? {};
      const sent = denied_response ?? ok_response;
      const line = log.find(each => each.requestId === requestId);
      if (line === undefined) throw new Error('no decision line');
      return {
        line,
        answer: {
          decision: words.decision?.stringValue as Explanation['decision'],
          reason: words.reason?.stringValue as Explanation['reason'],
          status: denied_response?.status.code ?? 200,
          headers: Object.fromEntries((sent?.headers ?? []).map(({ header }) => [header.key, header.value])),
        },
      };
    },
    /** The outcome of explain for the same request. */
    explain(request: ExplainedCase, ...more: readonly string[]) {
      const headers = (request.headers ?? []).flatMap(([name, value]) => ['--header', `${name}: ${value}`]);
      const options = ['--config', configFile, '--path', request.path ?? path, '--method', request.method ?? 'GET'];
      return runExplain([...options, ...headers, ...more], { input: request.authorization ?? '' });
    },
    async stop() {
      client.close();
      await service.stop();
      await issuer.stop();
    },
  };
}
