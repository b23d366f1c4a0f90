// Bounds the connections of an HTTP server. A new one is always taken: at the limit, the one that has been idle longest makes room.
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/**
 * In the place of `maxConnections` of Node, which closes the new connection: whoever holds idle ones would keep the probes out.
 * Only a whole request counts as activity, so a connection on which headers or an answer make slow progress is idle.
 */
export function limitConnections(server: Server, maxConnections: number): void {
  // The order is that of the last activity: a set keeps the order in which its members were added.
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
    // Not one that has closed with requests still to be answered.
    if (connections.delete(socket)) connections.add(socket);
  });
}
