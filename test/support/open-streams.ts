// What Node keeps of an HTTP/2 connection's streams, which it shows to nobody.
import type { ServerHttp2Session, ServerHttp2Stream } from 'node:http2';

interface StreamsOf {
  readonly streams: Map<number, ServerHttp2Stream>;
  readonly pendingStreams: Set<ServerHttp2Stream>;
}

export function openStreamsOf(session: ServerHttp2Session): Map<number, ServerHttp2Stream> {
  return stateOf(session).streams;
}

/** Whether they are kept in slots (src/envoy/stream-slots.ts). */
export function areInSlots(session: ServerHttp2Session): boolean {
  const { streams, pendingStreams } = stateOf(session);
  return [streams, pendingStreams].every(each => Object.getPrototypeOf(each) === Object.prototype);
}

function stateOf(session: ServerHttp2Session): StreamsOf {
  const name = Object.getOwnPropertySymbols(session).find(({ description }) => description === 'state');
  if (name === undefined) throw new Error('this Node keeps the streams of a connection somewhere else');
  return Reflect.get(session, name);
}
