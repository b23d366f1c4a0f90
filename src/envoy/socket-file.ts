// Prepares the file of a Unix socket: frees its path without taking it from a running server, and sets its mode.
import type { Stats } from 'node:fs';
import { chmod, lstat, unlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { dirname } from 'node:path';
import { errorCode } from '../text/problem.ts';

/**
 * Removes a stale socket, as a killed process leaves it. Throws if its folder is missing, if the path is not a socket, or if a server still
 * listens on it: the first of two servers to stop would remove the file of both.
 */
export async function freeSocketPath(path: string): Promise<void> {
  const stat = await statOf(path);
  if (stat === undefined) {
    // The bind would fail with EACCES, as if it were a matter of permissions.
    if ((await statOf(dirname(path))) === undefined)
      throw new Error('the folder of the socket of listen does not exist: create it or change listen');
    return;
  }
  if (!stat.isSocket())
    throw new Error('the path of listen exists and is not a socket: remove the file or change listen');
  if (await isServed(path)) throw new Error('another process serves the socket of listen: stop it or change listen');
  await unlink(path);
}

/** Undefined if there is no such file. */
function statOf(path: string): Promise<Stats | undefined> {
  return lstat(path).catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  });
}

/**
 * Sets the mode 0660 on a bound socket; Envoy must share the group. Before, the umask of `serve` restricts it to the owner. A umask set
 * only for the bind would affect every other file that is created meanwhile.
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
    // ECONNREFUSED: no listener. A server with a full backlog, or of another user, causes another error.
    socket.once('error', error => settle(errorCode(error) !== 'ECONNREFUSED'));
    socket.setTimeout(1000, () => settle(true));
  });
}
