import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { type Answer, type LoadProcess, startLoadProcess } from '../../../bench/load/http-load-process.ts';

describe('a load process', () => {
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
  });
  beforeEach(() => {
    seen.length = 0;
    answers.length = 0;
  });
  afterEach(() => load?.kill());
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  const start = (keepsAnswers: boolean) =>
    startLoadProcess(
      {
        origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
        connections: 2,
        lanes: [
          { kind: 'tokens', name: 'real', once: false, requests: [{ path: '/real', token: 'none' }] },
          { kind: 'strangers', name: 'rehearsed', path: '/rehearsal', payload: 'e30', isRehearsal: true },
        ],
        keepsAnswers,
      },
      {
        onAnswers: batch => void answers.push(...batch),
        onFault: error => {
          throw error;
        },
      },
    );

  it('tells nothing of a rehearsal, and counts it not', async () => {
    load = await start(false);
    load.setRates({ rehearsed: 200 });
    await until(() => seen.length > 5);
    load.setRates({ real: 100 });
    await until(() => answers.length > 5);
    const sent = await load.stop();
    expect(seen.filter(path => path.startsWith('/rehearsal?n=rehearsed.'))).to.have.length.greaterThan(5);
    expect(new Set(answers.map(({ lane }) => lane))).to.deep.equal(new Set(['real']));
    expect(sent).to.equal(answers.length);
  });

  it('that keeps its answers tells them when its rates are set, and the rest when it stops', async () => {
    load = await start(true);
    load.setRates({ real: 100 });
    // Longer than the time of a batch.
    await delay(300);
    expect(seen.length).to.be.greaterThan(5);
    expect(answers).to.have.length(0);
    load.setRates({ real: 50 });
    await until(() => answers.length > 5);
    const sent = await load.stop();
    expect(answers).to.have.length(sent);
  });
});

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await delay(10);
}
