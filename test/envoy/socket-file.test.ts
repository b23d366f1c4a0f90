import { once } from 'node:events';
import { lstat, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { expect } from 'chai';
import { freeSocketPath, shareWithGroup } from '../../src/envoy/socket-file.ts';

describe('socket file', () => {
  let folder: string;
  let path: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'account-authz-socket-'));
    path = join(folder, 'authz.sock');
  });
  afterEach(() => rm(folder, { recursive: true }));

  const failureOf = (freed: Promise<void>): Promise<unknown> =>
    freed.then(
      () => 'it was freed',
      (error: unknown) => error,
    );
  const isThere = (): Promise<boolean> =>
    lstat(path).then(
      () => true,
      () => false,
    );

  it('shares a socket with owner and group, whatever the umask, and leaves the umask alone', async () => {
    for (const umask of [0o000, 0o077]) {
      const before = process.umask(umask);
      try {
        const server = createServer().listen(path);
        await once(server, 'listening');
        const sharing = shareWithGroup(path);
        expect(process.umask()).to.equal(umask);
        await sharing;
        expect((await lstat(path)).mode & 0o777).to.equal(0o660);
        server.close();
        await once(server, 'close');
      } finally {
        process.umask(before);
      }
    }
  });

  it('takes a path that is not there as free, and no other fault', async () => {
    await freeSocketPath(path);
    await writeFile(path, '');
    expect(await failureOf(freeSocketPath(join(path, 'below')))).to.include({ code: 'ENOTDIR' });
  });

  it('keeps what is no socket', async () => {
    await writeFile(path, 'kept');
    expect(await failureOf(freeSocketPath(path))).to.include({
      message: 'the path of listen exists and is not a socket: remove the file or change listen',
    });
    expect(await isThere()).to.equal(true);
  });

  it('removes a socket that nobody listens on', async () => {
    const server = createServer().listen(`${path}.bound`);
    await once(server, 'listening');
    // A server that closes removes the name that it was bound to.
    await rename(`${path}.bound`, path);
    server.close();
    await once(server, 'close');
    expect(await isThere()).to.equal(true);
    await freeSocketPath(path);
    expect(await isThere()).to.equal(false);
  });

  const servers: readonly (readonly [name: string, take: (connection: Socket) => void])[] = [
    ['waits for its callers to speak', connection => connection.resume()],
    ['hangs up on them', connection => connection.destroy()],
  ];
  for (const [name, take] of servers) {
    it(`keeps a socket whose server ${name}, and leaves no connection to it`, async () => {
      const server = createServer(take).listen(path);
      await once(server, 'listening');
      expect(await failureOf(freeSocketPath(path))).to.include({
        message: 'another process serves the socket of listen: stop it or change listen',
      });
      expect(await isThere()).to.equal(true);
      server.close();
      // Comes when no connection is left.
      await once(server, 'close');
    });
  }

  it('keeps a socket whose server is alive and has no room for a further connection', async () => {
    const stuck = new Worker(
      `const { parentPort, workerData } = require('node:worker_threads');
      require('node:net').createServer().listen({ path: workerData, backlog: 1 }, () => {
        parentPort.postMessage('listening');
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
      });`,
      { eval: true, workerData: path },
    );
    await once(stuck, 'message');
    const sockets = Array.from({ length: 4 }, () => connect(path));
    const connected = await Promise.allSettled(sockets.map(socket => once(socket, 'connect')));
    expect(connected.map(({ status }) => status)).to.include('rejected');
    try {
      expect(await failureOf(freeSocketPath(path))).to.include({
        message: 'another process serves the socket of listen: stop it or change listen',
      });
      expect(await isThere()).to.equal(true);
    } finally {
      for (const socket of sockets) socket.destroy();
      await stuck.terminate();
    }
  });
});
