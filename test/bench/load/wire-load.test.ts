// The closed loop and the open loop of the bench against a server of the test: what is sent, counted and refused.
import { once } from 'node:events';
import { createServer, type Http2Server, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { ownBlock, sharedBlocks } from '../../../bench/load/hpack.ts';
import { createKeptConnections } from '../../../bench/load/kept-connections.ts';
import type { WireAnswer } from '../../../bench/load/wire-client.ts';
import {
  type Expected,
  isExpected,
  type RequestSet,
  runClosedLoop,
  runOpenLoop,
} from '../../../bench/load/wire-load.ts';

const none = Buffer.alloc(0);
const shared = sharedBlocks([
  { name: ':method', value: 'GET' },
  { name: ':scheme', value: 'http' },
  { name: ':authority', value: 'lab.test' },
]);

function set(count: number, once: boolean, expected: Expected = 'status 200'): RequestSet {
  const requests = Array.from({ length: count }, (_, index) => ({
    before: ownBlock([{ name: ':path', value: `/${index}` }]),
    after: none,
    body: undefined,
  }));
  return { requests, once, expected };
}

describe('a load over the wire', () => {
  let server: Http2Server;
  let paths: string[];

  before(async () => {
    server = createServer();
    server.on('stream', (stream, headers) => {
      const path = headers[':path'] ?? '';
      paths.push(path);
      stream.on('error', () => undefined);
      stream.respond({ ':status': path === '/1' ? 403 : 200 });
      stream.end('answer');
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  beforeEach(() => {
    paths = [];
  });
  after(() => void server.close());

  const run = (warmMs: number, measureMs: number) => ({
    target: { port: (server.address() as AddressInfo).port },
    connections: 2,
    shared,
    warmMs,
    measureMs,
    pids: [process.pid],
  });

  describe('in a closed loop', () => {
    it('sends each request of a one-time set once, and ends after the last', async () => {
      const { lanes } = await runClosedLoop(run(0, 60_000), { set: set(100, true), next: 2 }, 8);
      expect(paths.toSorted()).to.deep.equal(Array.from({ length: 98 }, (_, index) => `/${index + 2}`).toSorted());
      expect(lanes[0]).to.deep.include({ wrong: 0, failed: 0 });
    });

    it('repeats a set until the time is over, and counts wrong answers', async () => {
      const figures = await runClosedLoop(run(0, 150), { set: set(2, false), next: 0 }, 4);
      const [lane] = figures.lanes;
      expect(lane?.answered).to.be.above(0);
      expect(lane?.wrong).to.be.within(
        Math.floor((lane?.answered ?? 0) / 2) - 4,
        Math.ceil((lane?.answered ?? 0) / 2) + 4,
      );
      expect(lane?.latenciesMs).to.have.length(lane?.answered ?? 0);
      expect(figures.cpuMicroseconds).to.have.length(1);
    });

    it('fails if a connection closes', async () => {
      server.once('session', session => setTimeout(() => session.destroy(), 50));
      const outcome = await runClosedLoop(run(0, 60_000), { set: set(1, false), next: 0 }, 8).catch(String);
      expect(outcome).to.match(/GOAWAY|closed|ECONNRESET/);
    });
  });

  describe('on kept connections', () => {
    let opened: ServerHttp2Session[];
    let connect: ReturnType<typeof createKeptConnections>;
    const note = (session: ServerHttp2Session): unknown => opened.push(session);

    beforeEach(() => {
      opened = [];
      connect = createKeptConnections();
      server.on('session', note);
    });
    afterEach(() => {
      server.off('session', note);
      for (const session of opened) session.destroy();
    });

    async function callFiftyTimes(): Promise<void> {
      const before = paths.length;
      const { lanes } = await runClosedLoop(run(0, 60_000), { set: set(52, true), next: 2 }, 8, connect);
      expect(lanes[0]).to.deep.include({ wrong: 0, failed: 0 });
      expect(paths.length - before).to.equal(50);
    }

    it('uses those of the last run, whose answers were complete', async () => {
      await callFiftyTimes();
      await runOpenLoop(run(0, 50), [{ source: { set: set(1, false), next: 0 }, perSecond: 400 }], connect);
      await callFiftyTimes();
      expect(opened).to.have.length(2);
    });

    it('opens others after the server has closed them', async () => {
      await callFiftyTimes();
      for (const session of opened) session.destroy();
      // The client notices a little later.
      await new Promise(resolve => setTimeout(resolve, 50));
      await callFiftyTimes();
      expect(opened).to.have.length(4);
    });

    it('opens others after a run that failed', async () => {
      server.once('session', session => setTimeout(() => session.destroy(), 50));
      expect(await runClosedLoop(run(0, 60_000), { set: set(1, false), next: 0 }, 8, connect).catch(String)).to.match(
        /GOAWAY|closed|ECONNRESET/,
      );
      await callFiftyTimes();
      expect(opened).to.have.length(4);
    });
  });

  describe('in an open loop', () => {
    it('sends requests at their rate, whatever the answers are', async () => {
      const lanes = [
        { source: { set: set(1, false), next: 0 }, perSecond: 400 },
        { source: { set: set(2, false, 'another status'), next: 1 }, perSecond: 100 },
      ];
      const figures = await runOpenLoop(run(0, 200), lanes);
      expect(figures.lanes.map(({ answered }) => answered)).to.deep.equal([80, 20]);
      expect(figures.lanes.map(({ wrong }) => wrong)).to.deep.equal([0, 10]);
    });

    it('counts only requests that were due after the warm-up', async () => {
      const figures = await runOpenLoop(run(100, 100), [{ source: { set: set(1, false), next: 0 }, perSecond: 500 }]);
      expect(paths).to.have.length(100);
      expect(figures.lanes.map(({ answered }) => answered)).to.deep.equal([50]);
    });

    it('fails if a one-time set is used up', async () => {
      const outcome = await runOpenLoop(run(0, 1000), [
        { source: { set: set(3, true), next: 0 }, perSecond: 100 },
      ]).catch(String);
      expect(outcome).to.match(/no more than 3 requests/);
    });
  });
});

describe('an answer', () => {
  const complete = { statusByte: 0x88, message: undefined, isComplete: true };
  const allow = Buffer.from('00000000021a00', 'hex');
  const rows: readonly (readonly [name: string, expected: Expected, answer: WireAnswer, isRight: boolean])[] = [
    ['200 where 200 is expected', 'status 200', complete, true],
    ['200 where a refusal is expected', 'another status', complete, false],
    ['a refusal where one is expected', 'another status', { ...complete, statusByte: 0x48 }, true],
    ['an allow where one is expected', 'allow', { ...complete, message: allow }, true],
    ['an allow where a refusal is expected', 'deny', { ...complete, message: allow }, false],
    ['no message where an allow is expected', 'allow', complete, false],
    ['a stream that was reset', 'another status', { ...complete, statusByte: 0, isComplete: false }, false],
  ];
  for (const [name, expected, answer, isRight] of rows) {
    it(`is ${isRight ? 'right' : 'wrong'} if it is ${name}`, () => {
      expect(isExpected(expected, answer)).to.equal(isRight);
    });
  }
});
