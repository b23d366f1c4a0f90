// Pipelined admin requests: a limit of answers in flight per connection, so that other connections get their turn.
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { createAnswerTurns } from '../../src/admin/answer-turns.ts';
import { exchange, requestBytes } from '../support/raw-http.ts';
import { until } from '../support/service.ts';

describe('createAnswerTurns', () => {
  let server: Server;
  let port: number;
  let socket: Socket;
  let started: string[];
  let pending: ServerResponse[];

  beforeEach(async () => {
    started = [];
    pending = [];
    const inTurn = createAnswerTurns(4);
    server = createServer((request, response) => {
      inTurn(request.socket, response, () => {
        started.push(request.url ?? '');
        if (request.url === '/other') response.end();
        else pending.push(response);
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    port = (server.address() as AddressInfo).port;
    socket = connect({ host: '127.0.0.1', port });
    socket.write(Array.from({ length: 10 }, (_, number) => requestBytes('GET', `/${number}`)).join(''));
    await until(() => started.length > 0);
  });
  afterEach(() => {
    socket.destroy();
    server.closeAllConnections();
    server.close();
  });

  it('limits the answers in flight of a connection, and serves other connections', async () => {
    expect((await exchange(port, requestBytes('GET', '/other'))).status).to.equal(200);
    expect(started).to.deep.equal(['/0', '/1', '/2', '/3', '/other']);
  });

  it('answers every request of a connection in order', async () => {
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk;
    });
    for (let number = 0; number < 10; number += 1) {
      await until(() => pending.length > number);
      pending[number]?.end(`answer ${number};`);
    }
    await until(() => text.includes('answer 9;'));
    expect(text.match(/answer \d/g)).to.deep.equal(started.map(path => `answer ${path.slice(1)}`));
    expect(started).to.have.lengthOf(10);
  });

  it('starts no answer for a closed connection', async () => {
    const [first] = pending;
    if (first === undefined) throw new Error('no answer has started');
    const closed = once(first, 'close');
    socket.destroy();
    await closed;
    expect((await exchange(port, requestBytes('GET', '/other'))).status).to.equal(200);
    expect(started).to.deep.equal(['/0', '/1', '/2', '/3', '/other']);
  });
});
