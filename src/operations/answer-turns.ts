// Has the requests of one connection answered a few at a time: who sends a hundred in one packet (pipelining, RFC 9112 section 9.3.2)
// waits for its own answers to be read, and everybody else gets a turn between.
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

interface Turns {
  inFlight: number;
  readonly waiting: (() => void)[];
}

/** Gives a function that calls `begin` once fewer than `maxInFlight` answers of the connection are under way. */
export function createAnswerTurns(
  maxInFlight: number,
): (socket: Socket, response: ServerResponse, begin: () => void) => void {
  const connections = new WeakMap<Socket, Turns>();
  return (socket, response, begin) => {
    const turns = connections.get(socket) ?? { inFlight: 0, waiting: [] };
    connections.set(socket, turns);
    const take = (): void => {
      turns.inFlight += 1;
      // After the answer is taken, or when the connection has closed.
      response.once('close', () => {
        turns.inFlight -= 1;
        // In a later turn of the event loop, so that the other connections have theirs.
        setImmediate(() => turns.waiting.shift()?.());
      });
      begin();
    };
    if (turns.inFlight < maxInFlight && turns.waiting.length === 0) take();
    else turns.waiting.push(() => (socket.destroyed ? undefined : take()));
  };
}
