// Child process of key-thread.test.ts: an issuer that floods its clients in the way that the path names. Prints its port.
import { type AddressInfo, createServer } from 'node:net';

const times = 200_000;
// Each of these takes a client ten times as long as a header line.
const slowTimes = 20_000;
const json = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n';
const answers: ReadonlyMap<string, string> = new Map([
  ['/headers', `HTTP/1.1 200 OK\r\n${'a:\r\n'.repeat(times)}`],
  ['/trailers', `${json}transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n${'a:\r\n'.repeat(times)}`],
  ['/informational', 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(slowTimes)],
  ['/chunks', `${json}transfer-encoding: chunked\r\n\r\n${'1\r\n \r\n'.repeat(slowTimes)}`],
]);

const server = createServer(socket => {
  socket.on('error', () => undefined);
  socket.once('data', request => {
    const [, path = ''] = request.toString('latin1').split(' ');
    socket.end(answers.get(path) ?? `${json}content-length: 2\r\n\r\n{}`);
  });
});
server.listen(0, '127.0.0.1', () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
