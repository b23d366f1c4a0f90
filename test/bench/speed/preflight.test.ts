import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { WireRequest } from '../../../bench/load/wire-client.ts';
import type { Contender, Limits } from '../../../bench/speed/contender.ts';
import { projectDirectory } from '../../../bench/speed/lab.ts';
import { type PreflightCase, preflight, preflightCases, problemOf } from '../../../bench/speed/preflight.ts';
import { productConfiguration } from '../../../bench/speed/product.ts';
import { checkCallBlocks } from '../../../bench/speed/requests.ts';
import { ask, startServerProcess } from '../../../bench/speed/server-process.ts';
import { audience, createTokens, issuer as tokenIssuer } from '../../../bench/speed/tokens.ts';
import { configSchema } from '../../../src/config/schema.ts';
import { authorizationService } from '../../../src/envoy/proto-files.ts';
import type { CheckResponseMessage } from '../../../src/envoy/protocol.ts';
import { createLogger } from '../../../src/operations/log.ts';
import { type Service, startService } from '../../../src/service.ts';
import { freePorts } from '../../support/envoy.ts';
import { secrets } from '../../support/secrets.ts';
import { until } from '../../support/service.ts';
import { startTestIssuer, type TestIssuer } from '../../support/test-issuer.ts';

const bytes = (message: CheckResponseMessage): Buffer => authorizationService.Check.responseSerialize(message);
const allowFor = (account: string, ...removed: readonly string[]): Buffer =>
  bytes({
    status: { code: 0 },
    ok_response: { headers: [{ header: { key: 'x-auth-acc', value: account } }], headers_to_remove: removed },
  });
const deny = (status: number): Buffer =>
  bytes({ status: { code: 7 }, denied_response: { status: { code: status }, headers: [], body: '' } });
const allow = allowFor('acct-1', 'authorization');

describe('the check of a contender before it is timed', () => {
  const rows = [
    ['an allow for the account', 'peer', allow, 200, undefined],
    ['an allow for another account', 'peer', allowFor('acct-2'), 200, 'x-auth-acc is acct-2'],
    ['an allow where a refusal is due', 'peer', allow, 403, '200 instead of 403'],
    ['the refusal that is due', 'peer', deny(403), 403, undefined],
    ['another refusal than is due', 'peer', deny(403), 401, '403 instead of 401'],
    ['an empty answer', 'peer', Buffer.alloc(0), 200, '0 instead of 200'],
    ['the very message, of one that does nothing', 'floor', allow, 200, undefined],
    ['another message, of one that does nothing', 'floor', allowFor('acct-2'), 200, 'not the message of the product'],
  ] as const;
  for (const [name, family, answer, status, problem] of rows) {
    it(`${problem === undefined ? 'takes' : 'refuses'} ${name}`, () => {
      expect(problemOf({ family }, answer, { status }, allow, 'acct-1')).to.equal(problem);
    });
  }

  describe('of a peer that cannot say everything', () => {
    const limits = { removesHeaders: false, refusals: new Map([[404, [401, 403]]]), unasked: [] };
    const problem = (answer: Buffer, status: number): string | undefined =>
      problemOf({ family: 'peer', limits }, answer, { status, alsoRemoved: ['x-auth-more'] }, allow, 'acct-1');

    it('takes the refusals that it has instead', () => {
      expect(problem(deny(401), 404)).to.equal(undefined);
      expect(problem(deny(403), 404)).to.equal(undefined);
    });

    it('refuses any other, and an allow', () => {
      expect(problem(deny(400), 404)).to.equal('400 instead of 404');
      expect(problem(deny(403), 401)).to.equal('403 instead of 401');
      expect(problem(allow, 404)).to.equal('200 instead of 404');
    });

    it('does not ask for the removal of headers', () => {
      expect(problem(allowFor('acct-1'), 200)).to.equal(undefined);
    });
  });

  it('takes the removal of what the product removes and of what is due besides, in any order', () => {
    const due = { status: 200, alsoRemoved: ['x-auth-more'] };
    const answer = (...removed: readonly string[]): string | undefined =>
      problemOf({ family: 'peer' }, allowFor('acct-1', ...removed), due, allow, 'acct-1');
    expect(answer('x-auth-more', 'authorization')).to.equal(undefined);
    expect(answer('x-auth-more')).to.equal('removes x-auth-more');
    expect(answer('authorization')).to.equal('removes authorization');
  });
});

describe('the cases that are asked before anything is timed', function () {
  this.timeout(30_000);
  let directory: string;
  let issuer: TestIssuer;
  let service: Service;
  let cases: readonly PreflightCase[];
  let known: Buffer;

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'bench-preflight-'));
    const tokens = await createTokens('ES256', directory);
    cases = await preflightCases(tokens);
    issuer = await startTestIssuer({ keys: [tokens.publicJwk] });
    service = await startService({
      config: configSchema.parse({
        ...productConfiguration(issuer.jwksUrl),
        listen: '127.0.0.1:0',
        admin: '127.0.0.1:0',
      }),
      version: '0.0.0-test',
      logger: createLogger({ level: 'error', allowed: false }, { write: line => secrets.show('log', line) }),
      proxy: {},
    });
    await until(async () => (await fetch(`http://127.0.0.1:${service.ports.admin}/readyz`)).ok);
    known = await answerTo('a good token');
  });
  after(async () => {
    await service.stop();
    await issuer.stop();
    await rm(directory, { recursive: true });
  });

  function requestOf(name: string): WireRequest {
    const request = cases.find(each => each.name === name)?.request;
    if (request === undefined) throw new Error(`no case ${name}`);
    return request;
  }

  async function answerTo(name: string): Promise<Buffer> {
    const request = requestOf(name);
    const { message } = await ask({ target: { port: service.ports.listen }, shared: checkCallBlocks, request });
    return message?.subarray(5) ?? Buffer.alloc(0);
  }

  const contender = (exceptions: readonly string[], limits?: Limits): Contender => ({
    name: 'a peer',
    title: '',
    family: 'peer',
    set: 'known',
    exceptions,
    ...(limits === undefined ? {} : { limits }),
    start: () => Promise.reject(new Error('it is started')),
  });
  const running = (port: number) => ({
    port,
    pid: 0,
    startMs: 0,
    signal: () => undefined,
    stop: async () => undefined,
  });
  const problem = (
    exceptions: readonly string[],
    asked = cases,
    { port = service.ports.listen, limits }: { readonly port?: number; readonly limits?: Limits } = {},
  ): Promise<string | undefined> =>
    preflight(contender(exceptions, limits), running(port), asked, known, 'acct-000000').then(
      () => undefined,
      (error: Error) => error.message,
    );

  async function wrongAnswers(port: number): Promise<readonly (string | undefined)[]> {
    const problems = [];
    for (const each of cases) problems.push(await problem([], [each], { port }));
    return problems.filter(text => text !== undefined);
  }

  it('are all answered rightly by account-authz', async () => {
    expect(await wrongAnswers(service.ports.listen)).to.deep.equal([]);
  });

  it('are all answered rightly by the peer that runs on Node', async () => {
    const [port = 0] = await freePorts(1);
    const answerFile = join(directory, 'allow.bin');
    await writeFile(answerFile, known);
    const options = { port, protoDirectory: join(projectDirectory, 'proto'), answerFile, jwksUrl: issuer.jwksUrl };
    const peer = await startServerProcess(
      {
        command: process.execPath,
        args: [
          ...['--import', 'tsx', join(projectDirectory, 'bench', 'peers', 'node', 'jose.ts')],
          JSON.stringify({ ...options, issuer: tokenIssuer, audience }),
        ],
      },
      undefined,
      { target: { port }, shared: checkCallBlocks, request: requestOf('a good token'), expected: 'allow' },
    );
    try {
      expect(await wrongAnswers(port)).to.deep.equal([]);
    } finally {
      await peer.stop();
    }
  });

  it('have names and requests of their own, but for the one that is asked twice', () => {
    const requests = cases.map(({ request }) => request.body?.toString('latin1'));
    expect(new Set(cases.map(({ name }) => name)).size).to.equal(cases.length);
    expect(new Set(requests).size).to.equal(cases.length - 1);
  });

  it('ask for every status that a refusal of a request has', () => {
    expect([...new Set(cases.map(({ status }) => status))].sort()).to.deep.equal([200, 400, 401, 403, 404]);
  });

  it('end the bench where one is answered wrongly', async () => {
    const wrong = cases.map(each => (each.name === 'no exp' ? { ...each, status: 403 } : each));
    expect(await problem([], wrong)).to.equal('a peer answers no exp wrongly: 401 instead of 403');
    expect(await problem(['no exp'], wrong)).to.equal(undefined);
  });

  it('leave out the one that the contender has no answer to', async () => {
    const wrong = cases.map(each => ({ ...each, status: each.name === 'no exp' ? 403 : each.status }));
    const limits = { removesHeaders: true, refusals: new Map(), unasked: ['no exp'] };
    expect(await problem([], wrong, { limits })).to.equal(undefined);
  });

  it('end the bench where an exception is named that is none', async () => {
    expect(await problem(['no exp'])).to.equal('a peer needs no exception for no exp');
  });
});
