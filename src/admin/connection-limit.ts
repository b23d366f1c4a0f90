// Limits the connections of an HTTP server. At the limit a new connection replaces the one that has been idle longest.
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Replaces Node's `maxConnections`, which closes the new connection, so that a client with idle connections could keep the probes out.
 * Only a complete request counts as activity: a connection with slow headers or a slow reader is idle.
 */
export function limitConnections(server: Server, maxConnections: number): void {
  // In order of the last activity: a set keeps insertion order.
  const connections = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
    const [idleLongest] = connections;
    if (connections.size <= maxConnections || idleLongest === undefined) return;
    connections.delete(idleLongest);
    idleLongest.destroy();
  });
  server.on('request', ({ socket }) => {
    // A closed connection with unanswered requests stays out.
    if (connections.delete(socket)) connections.add(socket);
  });
}
