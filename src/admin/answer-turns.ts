// Limits the answers in flight of each connection. A client that pipelines a hundred requests (RFC 9112 section 9.3.2) waits for its own
// answers, and other connections are served in between.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

interface Turns {
  inFlight: number;
  readonly waiting: (() => void)[];
}

/** The returned function calls `begin` once fewer than `maxInFlight` answers of the connection are in flight. */
export function createAnswerTurns(
  maxInFlight: number,
): (socket: Socket, response: ServerResponse, begin: () => void) => void {
  const connections = new WeakMap<Socket, Turns>();
  return (socket, response, begin) => {
    const turns = connections.get(socket) ?? { inFlight: 0, waiting: [] };
    connections.set(socket, turns);
    const take = (): void => {
      turns.inFlight += 1;
      // The client has read the answer, or the connection has closed.
      response.once('close', () => {
        turns.inFlight -= 1;
        // In a later turn of the event loop: other connections go first.
        setImmediate(() => turns.waiting.shift()?.());
      });
      begin();
    };
    if (turns.inFlight < maxInFlight && turns.waiting.length === 0) take();
    else turns.waiting.push(() => (socket.destroyed ? undefined : take()));
  };
}
