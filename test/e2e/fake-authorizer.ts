// A fake authorizer that gives any answer, also one that no gRPC server would give.
import { createServer, type Http2Session, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { uid } from '../../lab/token.ts';
import { authorizationService } from '../../src/envoy/protocol.ts';
import { toCheckResponse } from '../../src/envoy/response.ts';
import { createIdentityHeaders } from '../../src/headers/headers.ts';
import { principal } from '../support/facts.ts';
import { listen } from '../support/listen.ts';

export type AnswerCheck = (stream: ServerHttp2Stream, attempt: number) => void;

export async function startFakeAuthorizer() {
  const server = createServer();
  const sessions = new Set<Http2Session>();
  let attempts = 0;
  let latest: IncomingHttpHeaders = {};
  const fake = { answer: neverAnswers };
  server.on('session', session => {
    sessions.add(session);
    session.on('close', () => sessions.delete(session));
    session.on('error', () => undefined);
  });
  server.on('stream', (stream, headers) => {
    attempts += 1;
    latest = headers;
    stream.on('error', () => undefined);
    fake.answer(stream, attempts);
  });
  const port = await listen(server);
  server.unref();
  return Object.assign(fake, {
    address: `127.0.0.1:${port}`,
    /** The number of checks since the last `answerWith`. */
    attempts: () => attempts,
    headers: () => latest,
    answerWith(answer: AnswerCheck) {
      attempts = 0;
      fake.answer = answer;
    },
    stop: () =>
      new Promise<void>(resolve => {
        server.close(() => resolve());
        for (const session of sessions) session.destroy();
      }),
  });
}

export const neverAnswers: AnswerCheck = () => undefined;

/** A complete gRPC answer around the bytes of a message. */
export function answersMessage(message: Buffer, status = 0): AnswerCheck {
  return stream => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': String(status) }));
    stream.end(framed(message));
  };
}

/** A gRPC status without a message. */
export function answersStatus(status: number): AnswerCheck {
  return stream => {
    stream.respond(
      { ':status': 200, 'content-type': 'application/grpc', 'grpc-status': String(status) },
      { endStream: true },
    );
  };
}

/** Any HTTP answer. */
export function answersHttp(status: number, contentType: string, body: string): AnswerCheck {
  return stream => {
    stream.respond({ ':status': status, 'content-type': contentType });
    stream.end(body);
  };
}

/** The frame of a gRPC message (length-prefixed, not compressed). */
export function framed(message: Buffer): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

/** The bytes of the product's allow. */
export function allowMessage(): Buffer {
  const settings = { identityHeaders: createIdentityHeaders('x-auth-'), removedHeaders: ['authorization'] };
  const allowed = principal({ uid });
  const context = { requestId: 'none', receivedHeaders: [], principal: allowed };
  return authorizationService.Check.responseSerialize(
    toCheckResponse(settings, { kind: 'allow', principal: allowed, forwarded: [] }, context),
  );
}
