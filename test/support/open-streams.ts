// What Node keeps of an HTTP/2 connection's open streams, which it shows to nobody.
import type { ServerHttp2Session, ServerHttp2Stream } from 'node:http2';

export function openStreamsOf(session: ServerHttp2Session): Map<number, ServerHttp2Stream> {
  const name = Object.getOwnPropertySymbols(session).find(({ description }) => description === 'state');
  if (name === undefined) throw new Error('this Node keeps the streams of a connection somewhere else');
  return Reflect.get(session, name).streams;
}

/** Whether they are kept in slots (src/envoy/stream-slots.ts). */
export function isInSlots(streams: Map<number, ServerHttp2Stream>): boolean {
  return Object.getPrototypeOf(streams) === Object.prototype;
}
