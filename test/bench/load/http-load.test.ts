import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { createLoad, type LoadAnswer } from '../../../bench/load/http-load.ts';

describe('the open-loop load', () => {
  let server: Server;
  let isHolding: boolean;
  let held: (() => void)[];
  let answers: LoadAnswer[];

  beforeEach(async () => {
    isHolding = false;
    held = [];
    answers = [];
    server = createServer((request, response) => {
      const end = (): void => {
        response.statusCode = request.url === '/teapot' ? 418 : 200;
        response.end(request.url);
      };
      if (isHolding) held.push(end);
      else end();
    });
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  });
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  const start = (connections: number, paths: Readonly<Record<string, string>> = { only: '/' }) =>
    createLoad({
      origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      connections,
      lanes: Object.entries(paths).map(([name, path]) => ({ name, request: () => ({ path, headers: {} }) })),
      onAnswer: answer => void answers.push(answer),
    });

  it('keeps its times while nothing is answered, and latency counts from them', async () => {
    const load = start(1);
    isHolding = true;
    load.setRates({ only: 100 });
    await delay(300);
    isHolding = false;
    for (const end of held) end();
    const sent = await load.stop();
    expect(sent).to.be.greaterThan(20);
    expect(answers).to.have.length(sent);
    const gaps = answers.slice(1).map((answer, index) => answer.scheduledMs - (answers[index]?.scheduledMs ?? 0));
    for (const gap of gaps) expect(gap).to.be.closeTo(10, 0.001);
    // Due in the first 100 ms, answered after 300: although only one of them was on the wire.
    const early = answers.filter(answer => answer.scheduledMs < (answers[0]?.scheduledMs ?? 0) + 100);
    expect(early).to.have.length.greaterThan(8);
    for (const { scheduledMs, answeredMs } of early) expect(answeredMs - scheduledMs).to.be.greaterThan(180);
    expect(held.length).to.equal(1);
  });

  it('gives each lane its rate, its numbers and its answers', async () => {
    const load = start(8, { tea: '/teapot', coffee: '/coffee', rest: '/rest' });
    load.setRates({ tea: 200, coffee: 50 });
    await delay(300);
    load.setRates({ coffee: 50 });
    await load.stop();
    const [tea, coffee, rest] = ['tea', 'coffee', 'rest'].map(lane => answers.filter(each => each.lane === lane));
    expect(new Set(tea?.map(({ status, body }) => `${status} ${body}`))).to.deep.equal(new Set(['418 /teapot']));
    expect(new Set(coffee?.map(({ status, body }) => `${status} ${body}`))).to.deep.equal(new Set(['200 /coffee']));
    expect(tea?.map(each => each.number).sort((a, b) => a - b)).to.deep.equal(tea?.map((_, index) => index));
    expect(tea?.length).to.be.greaterThan(2 * (coffee?.length ?? 0));
    expect(rest).to.deep.equal([]);
  });

  it('tells a connection that fails as status 0', async () => {
    const load = start(4);
    isHolding = true;
    load.setRates({ only: 100 });
    await delay(50);
    server.closeAllConnections();
    server.close();
    await load.stop();
    expect(answers.length).to.be.greaterThan(0);
    expect(new Set(answers.map(({ status }) => status))).to.deep.equal(new Set([0]));
  });
});
