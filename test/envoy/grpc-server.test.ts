import { once } from 'node:events';
import http2, { type ServerHttp2Stream } from 'node:http2';
import { Client, credentials, Metadata } from '@grpc/grpc-js';
import { expect } from 'chai';
import { startGrpcServer } from '../../src/envoy/grpc-server.ts';
import { authorizationService } from '../../src/envoy/protocol.ts';

describe('gRPC server', () => {
  it('leaves nothing listening to the stream of a call that has ended, so that nothing of the call is kept with it', async () => {
    const streams: ServerHttp2Stream[] = [];
    const { createServer } = http2;
    http2.createServer = ((...args: Parameters<typeof createServer>) =>
      createServer(...args).on('stream', stream => streams.push(stream))) as typeof createServer;
    const server = await startGrpcServer({
      address: { kind: 'tcp', host: '127.0.0.1', port: 0 },
      check: () => Buffer.from([]),
      health: {},
    }).finally(() => {
      http2.createServer = createServer;
    });
    const client = new Client(`127.0.0.1:${server.port}`, credentials.createInsecure());
    try {
      const { path } = authorizationService.Check;
      await new Promise<void>((resolve, reject) => {
        const asBytes = (bytes: Buffer): Buffer => bytes;
        client.makeUnaryRequest(path, asBytes, asBytes, Buffer.from([]), new Metadata(), error =>
          error === null ? resolve() : reject(error),
        );
      });
      const [stream] = streams;
      if (stream === undefined) throw new Error('no stream was seen');
      if (!stream.closed || stream.listenerCount('end') > 0) await once(stream, 'close');
      expect(stream.eventNames()).to.deep.equal(['error']);
    } finally {
      client.close();
      await server.stop(0, () => undefined);
    }
  });
});
