import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { freeSocketPath, withSocketMode } from '../../src/envoy/socket-file.ts';

describe('socket file', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'account-authz-socket-'));
  });
  after(() => rm(folder, { recursive: true }));

  it('leaves the umask of the process as it was, whether the socket could be made or not', async () => {
    const before = process.umask();
    const during = await withSocketMode(async () => process.umask());
    await withSocketMode(() => Promise.reject(new Error('in use'))).catch(() => undefined);
    expect(during).to.equal(0o117);
    expect(process.umask()).to.equal(before);
  });

  it('takes a path that is not there as free, and no other fault', async () => {
    await freeSocketPath(join(folder, 'authz.sock'));
    await writeFile(join(folder, 'file'), '');
    const error: unknown = await freeSocketPath(join(folder, 'file', 'authz.sock')).catch((fault: unknown) => fault);
    expect(error).to.include({ code: 'ENOTDIR' });
  });
});
