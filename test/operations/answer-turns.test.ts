import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { createAnswerTurns } from '../../src/operations/answer-turns.ts';
import { exchange, requestBytes } from '../support/raw-http.ts';
import { until } from '../support/service.ts';

describe('answer turns', () => {
  let server: Server;
  let port: number;
  let socket: Socket;
  let begun: string[];
  let held: ServerResponse[];

  beforeEach(async () => {
    begun = [];
    held = [];
    const inTurn = createAnswerTurns(4);
    server = createServer((request, response) => {
      inTurn(request.socket, response, () => {
        begun.push(request.url ?? '');
        if (request.url === '/other') response.end();
        else held.push(response);
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    port = (server.address() as AddressInfo).port;
    socket = connect({ host: '127.0.0.1', port });
    socket.write(Array.from({ length: 10 }, (_, number) => requestBytes('GET', `/${number}`)).join(''));
    await until(() => begun.length > 0);
  });
  afterEach(() => {
    socket.destroy();
    server.closeAllConnections();
    server.close();
  });

  it('start a few answers of a connection, and those of other connections in between', async () => {
    expect((await exchange(port, requestBytes('GET', '/other'))).status).to.equal(200);
    expect(begun).to.deep.equal(['/0', '/1', '/2', '/3', '/other']);
  });

  it('answer each request of the connection, in order', async () => {
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk;
    });
    for (let number = 0; number < 10; number += 1) {
      await until(() => held.length > number);
      held[number]?.end(`answer ${number};`);
    }
    await until(() => text.includes('answer 9;'));
    expect(text.match(/answer \d/g)).to.deep.equal(begun.map(path => `answer ${path.slice(1)}`));
    expect(begun).to.have.lengthOf(10);
  });

  it('start nothing for a closed connection', async () => {
    const [first] = held;
    if (first === undefined) throw new Error('nothing has begun');
    const closed = once(first, 'close');
    socket.destroy();
    await closed;
    expect((await exchange(port, requestBytes('GET', '/other'))).status).to.equal(200);
    expect(begun).to.deep.equal(['/0', '/1', '/2', '/3', '/other']);
  });
});
