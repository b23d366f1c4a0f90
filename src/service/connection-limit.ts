// Limits the connections of an HTTP server. At the limit a new connection replaces the oldest.
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** Replaces Node's `maxConnections`, which closes the new connection, so that a client with idle connections could keep the probes out. */
export function limitConnections(server: Server, maxConnections: number): void {
  // In the order of their arrival: a set keeps insertion order.
  const connections = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
    const [oldest] = connections;
    if (connections.size <= maxConnections || oldest === undefined) return;
    connections.delete(oldest);
    oldest.destroy();
  });
}
