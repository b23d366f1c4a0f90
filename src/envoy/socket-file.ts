// The file of a Unix socket: makes its path free for a new server without taking it from a living one.
import { chmod, lstat, unlink } from 'node:fs/promises';
import { connect } from 'node:net';

/**
 * Removes a socket that nobody answers on, as a killed process leaves it. Throws where the path is something else, or is
 * still served: two servers on one path would end with none, since the first to stop removes the file.
 */
export async function freeSocketPath(path: string): Promise<void> {
  const stat = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (stat === undefined) return;
  if (!stat.isSocket()) throw new Error('the path of listen exists and is not a socket');
  if (await isServed(path)) throw new Error('another process serves the socket of listen');
  await unlink(path);
}

/**
 * Gives a bound socket the mode 0660: owner and group, which Envoy must share. Until then it has what the umask of the process leaves,
 * which `serve` sets to its owner alone: a umask for the time of a bind would be that of everything else done meanwhile.
 */
export function shareWithGroup(path: string): Promise<void> {
  return chmod(path, 0o660);
}

function isServed(path: string): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(path);
    const settle = (served: boolean): void => {
      socket.destroy();
      resolve(served);
    };
    socket.once('connect', () => settle(true));
    // Refused: nobody listens. A server that has no room for a further connection, or that is another user's, gives another error.
    socket.once('error', (error: NodeJS.ErrnoException) => settle(error.code !== 'ECONNREFUSED'));
    socket.setTimeout(1000, () => settle(true));
  });
}
