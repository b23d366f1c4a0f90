// The limit of the runtime: a unary gRPC handler on bare node:http2 that reads the request to its end and answers bytes made once.
import { createServer } from 'node:http2';
import { answerBytes, peerOptions } from './proto.ts';

const options = peerOptions();
const message = answerBytes(options);
const framed = Buffer.alloc(5 + message.length);
framed.writeUInt32BE(message.length, 1);
message.copy(framed, 5);

const server = createServer();
server.on('stream', stream => {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  stream.on('error', () => undefined);
  stream.on('end', () => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.end(framed);
  });
});
server.listen(options.port, '127.0.0.1');
