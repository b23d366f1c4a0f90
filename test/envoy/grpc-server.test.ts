import http2, { type ServerHttp2Session } from 'node:http2';
import { Client, credentials, Metadata } from '@grpc/grpc-js';
import { expect } from 'chai';
import { startGrpcServer } from '../../src/envoy/grpc-server.ts';
import { authorizationService } from '../../src/envoy/protocol.ts';
import { isInSlots, openStreamsOf } from '../support/open-streams.ts';

describe('gRPC server', () => {
  it('keeps the open streams of its connections in slots, so that nothing of a call is kept with them', async () => {
    const sessions: ServerHttp2Session[] = [];
    const { createServer } = http2;
    http2.createServer = ((...args: Parameters<typeof createServer>) =>
      createServer(...args).on('session', session => sessions.push(session))) as typeof createServer;
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
      expect(sessions.map(session => isInSlots(openStreamsOf(session)))).to.deep.equal([true]);
    } finally {
      client.close();
      await server.stop(0, () => undefined);
    }
  });
});
