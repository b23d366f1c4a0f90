// A host with several addresses: a fetch gets its document from whichever answers, whatever the others do.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Worker } from 'node:worker_threads';
import { expect } from 'chai';
import { get, read, textOf, useFetchLab } from './fetch-lab.ts';

// A server that accepts nothing for some time while its queue is full: Linux drops further SYNs, and the client repeats its own after a second.
const slowServer = `
const { createServer } = require('node:net');
const { parentPort, workerData } = require('node:worker_threads');
const { host, port, blockedMs, answer } = workerData;
const server = createServer(socket => socket.on('error', () => {}).on('data', () => socket.end(answer)));
server.listen({ host, port, backlog: 1 }, () => {
  parentPort.postMessage('listening');
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, blockedMs);
});
`;

const body = '{"keys":["slow"]}';
const answer = `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`;
const tenMinutesMs = 600_000;

describe('a host with several addresses', () => {
  const { ends, issuerWith } = useFetchLab();

  /** Listens at this address, and connects nobody for so long. */
  async function blocked(host: string, port: number, blockedMs: number): Promise<void> {
    const worker = new Worker(slowServer, { eval: true, workerData: { host, port, blockedMs, answer } });
    ends.push(() => worker.terminate());
    await once(worker, 'message');
    const fillers: Socket[] = Array.from({ length: 4 }, () => connect({ host, port }).on('error', () => undefined));
    ends.push(() => fillers.forEach(filler => void filler.destroy()));
    await Promise.all(fillers.slice(0, 2).map(filler => once(filler, 'connect')));
  }

  const at =
    (...addresses: readonly string[]) =>
    () =>
      Promise.resolve(addresses.map(address => ({ address })));
  /** A port that is free at every loopback address, as it was that of an issuer. */
  async function freePort(): Promise<number> {
    const issuer = await issuerWith();
    await issuer.stop();
    return issuer.port;
  }

  it('that answers after a second at the first and not at all at the other gives its keys', async () => {
    const port = await freePort();
    await blocked('127.0.0.2', port, 500);
    const found = await read(
      { jwksUrl: `http://slow.test:${port}/`, allowHttp: true },
      { lookup: at('127.0.0.2', '::1') },
    );
    expect(textOf(found)).to.equal(body);
  }).timeout(30_000);

  it('is asked at the next one when the first refuses, and while the first hangs', async () => {
    const issuer = await issuerWith();
    await blocked('127.0.0.3', issuer.port, tenMinutesMs);
    for (const first of [['::1'], ['127.0.0.3'], ['::1', '127.0.0.3', '127.0.0.2']]) {
      const found = await get(issuer.jwksUrl.replace('127.0.0.1', 'many.test'), { lookup: at(...first, '127.0.0.1') });
      expect(textOf(found), first.join()).to.contain('"kid":"k1"');
    }
  }).timeout(30_000);

  it('tries all of many within the shortest time limit', async () => {
    const issuer = await issuerWith();
    const hanging = Array.from({ length: 6 }, (_, i) => `127.0.1.${i + 1}`);
    await Promise.all(hanging.map(host => blocked(host, issuer.port, tenMinutesMs)));
    const jwksUrl = issuer.jwksUrl.replace('127.0.0.1', 'many.test');
    const startedMs = performance.now();
    const found = await read({ jwksUrl }, { timeoutMs: 60_000, lookup: at(...hanging, '127.0.0.1') });
    expect(textOf(found)).to.contain('"kid":"k1"');
    expect(performance.now() - startedMs).to.be.below(20_000);
  }).timeout(60_000);

  it('names the problem of an address that answered, rather than that of one without a route', async () => {
    const port = await freePort();
    const found = await get(`http://many.test:${port}/`, { lookup: at('127.0.0.1', '::1') });
    expect(textOf(found)).to.equal('connection refused');
  });
});
