import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { findOpa } from '../../../bench/speed/build-peers.ts';

describe('opa-envoy-plugin', () => {
  let directory: string;
  let binary: string;

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'bench-opa-'));
    binary = join(directory, 'opa-envoy-plugin');
    await writeFile(binary, '');
    await chmod(binary, 0o755);
  });
  after(() => rm(directory, { recursive: true }));

  it('is taken from where the environment names it', async () => {
    expect(await findOpa({ OPA_ENVOY_PLUGIN: binary, PATH: '' })).to.deep.equal({ kind: 'built', path: binary });
  });

  it('is found on the PATH', async () => {
    expect(await findOpa({ PATH: `/nowhere:${directory}` })).to.deep.equal({ kind: 'built', path: binary });
  });

  it('is told absent where it is named and not there, whatever the PATH has', async () => {
    expect((await findOpa({ OPA_ENVOY_PLUGIN: '/nowhere/opa', PATH: directory })).kind).to.equal('absent');
  });

  it('is told absent where it is nowhere', async () => {
    expect((await findOpa({ PATH: '/nowhere' })).kind).to.equal('absent');
  });
});
