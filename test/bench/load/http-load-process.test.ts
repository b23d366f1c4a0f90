import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { type Answer, type LoadProcess, startLoadProcess } from '../../../bench/load/http-load-process.ts';

describe('a load process that rehearses', () => {
  const seen: string[] = [];
  const answers: Answer[] = [];
  let server: Server;
  let load: LoadProcess | undefined;

  before(async () => {
    server = createServer((request, response) => {
      seen.push(request.url ?? '');
      response.writeHead(200, { 'content-length': '0' }).end();
    });
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    load = await startLoadProcess(
      {
        origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
        connections: 2,
        lanes: [{ kind: 'tokens', name: 'real', once: false, requests: [{ path: '/real', token: 'none' }] }],
        rehearsal: {
          lane: { kind: 'strangers', name: 'rehearsed', path: '/rehearsal', payload: 'e30' },
          perSecond: 200,
          forMs: 200,
        },
      },
      {
        onAnswers: batch => void answers.push(...batch),
        onFault: error => {
          throw error;
        },
      },
    );
  });
  after(() => {
    load?.kill();
    server.closeAllConnections();
    server.close();
  });

  it('has done so before it starts', async () => {
    expect(seen.length).to.be.greaterThan(5);
    expect(seen.filter(path => !path.startsWith('/rehearsal?n=rehearsed.'))).to.deep.equal([]);
    const rehearsed = seen.length;
    await delay(100);
    expect(seen.length).to.equal(rehearsed);
  });

  it('tells nothing of it, and counts it not', async () => {
    load?.setRates({ real: 100 });
    await delay(300);
    const sent = await load?.stop();
    expect(answers.length).to.be.greaterThan(5);
    expect(new Set(answers.map(({ lane }) => lane))).to.deep.equal(new Set(['real']));
    expect(sent).to.equal(answers.length);
  });
});
