// The Unix socket file of listen: its mode, and which existing files are removed or kept.
import { once } from 'node:events';
import { lstat, rename, writeFile } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { freeSocketPath, shareWithGroup } from '../../src/envoy/socket-file.ts';
import { freshFolder } from '../support/fresh-folder.ts';

describe('socket file', () => {
  let folder: string;
  let path: string;
  beforeEach(async () => {
    folder = freshFolder();
    path = join(folder, 'authz.sock');
  });

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

  it('gets mode 0660 whatever the umask, which stays unchanged', async () => {
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

  it('may be absent, and other errors of the path are thrown', async () => {
    await freeSocketPath(path);
    await writeFile(path, '');
    expect(await failureOf(freeSocketPath(join(path, 'below')))).to.include({ code: 'ENOTDIR' });
  });

  it('needs its folder', async () => {
    expect(await failureOf(freeSocketPath(join(folder, 'missing', 'authz.sock')))).to.include({
      message: 'the folder of the socket of listen does not exist: create it or change listen',
    });
  });

  it('G-038 is kept when it is a regular file', async () => {
    await writeFile(path, 'kept');
    expect(await failureOf(freeSocketPath(path))).to.include({
      message: 'the path of listen exists and is not a socket: remove the file or change listen',
    });
    expect(await isThere()).to.equal(true);
  });

  it('G-038 is removed when nobody listens on the socket', async () => {
    const server = createServer().listen(`${path}.bound`);
    await once(server, 'listening');
    // A closing server unlinks the name that it was bound to, so the socket gets another name.
    await rename(`${path}.bound`, path);
    server.close();
    await once(server, 'close');
    expect(await isThere()).to.equal(true);
    await freeSocketPath(path);
    expect(await isThere()).to.equal(false);
  });

  const servers: readonly (readonly [name: string, onConnection: (connection: Socket) => void])[] = [
    ['keeps its connections open', connection => connection.resume()],
    ['closes its connections', connection => connection.destroy()],
  ];
  for (const [name, onConnection] of servers) {
    it(`is kept when a server ${name}, and no connection is left open`, async () => {
      const server = createServer(onConnection).listen(path);
      await once(server, 'listening');
      expect(await failureOf(freeSocketPath(path))).to.include({
        message: 'another process serves the socket of listen: stop it or change listen',
      });
      expect(await isThere()).to.equal(true);
      server.close();
      // Emitted only when no connection is left.
      await once(server, 'close');
    });
  }
});
