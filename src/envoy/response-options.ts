// What an HTTP/2 stream is told with its response, in the one form that V8 handles without work of its own for each call.
import type {
  OutgoingHttpHeaders,
  ServerHttp2Session,
  ServerHttp2Stream,
  ServerStreamResponseOptions,
} from 'node:http2';

/**
 * Has the responses of this connection begun with options that name all that Node reads of them, and without a `date`, which gRPC
 * does not ask for. To be called before the first stream.
 *
 * Node copies the options of a response and then sets `endStream` in the copy. Where grpc-js has left that out, V8 up to Node 20 makes
 * a hidden class for each copy, in the old generation, and looks up anew each member that is read of it; docs/performance.md says
 * what that costs.
 */
export function respondWithAllOptions(session: Pick<ServerHttp2Session, 'prependListener'>): void {
  session.prependListener('stream', stream => {
    stream.respond = respond;
  });
}

function respond(
  this: ServerHttp2Stream,
  headers?: OutgoingHttpHeaders,
  { endStream = false, waitForTrailers = false }: ServerStreamResponseOptions = {},
): void {
  const options = { endStream, sendDate: false, waitForTrailers };
  Object.getPrototypeOf(this).respond.call(this, headers, options);
}
