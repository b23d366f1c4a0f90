import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { findAuthorino, findOpa } from '../../../bench/speed/build-peers.ts';

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

describe('Authorino and its Kubernetes API', () => {
  let directory: string;
  let authorino: string;
  let kube: string;
  let tools: object;

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'bench-authorino-'));
    authorino = join(directory, 'authorino');
    kube = join(directory, 'kube');
    await mkdir(kube);
    const [etcd, apiServer] = [join(kube, 'etcd'), join(kube, 'kube-apiserver')];
    for (const binary of [authorino, etcd, apiServer]) await writeFile(binary, '', { mode: 0o755 });
    tools = { authorino, etcd, apiServer };
  });
  after(() => rm(directory, { recursive: true }));

  it('are taken from where the environment names them', async () => {
    const environment = { AUTHORINO: authorino, KUBE_TOOLS: kube, PATH: '' };
    expect(await findAuthorino(environment)).to.deep.equal({ kind: 'found', tools });
  });

  it('are found on the PATH', async () => {
    const environment = { AUTHORINO: '', KUBE_TOOLS: '', PATH: `/nowhere:${directory}:${kube}` };
    expect(await findAuthorino(environment)).to.deep.equal({ kind: 'found', tools });
  });

  for (const [what, reason, environment] of [
    ['Authorino', 'no $AUTHORINO, and none on the PATH', () => ({ AUTHORINO: '/nowhere/authorino', KUBE_TOOLS: kube })],
    [
      'the API',
      'no etcd and kube-apiserver in $KUBE_TOOLS or on the PATH',
      () => ({ AUTHORINO: authorino, KUBE_TOOLS: '/nowhere' }),
    ],
  ] as const) {
    it(`are told absent where ${what} is named and not there, whatever the PATH has`, async () => {
      const path = `${directory}:${kube}`;
      expect(await findAuthorino({ ...environment(), PATH: path })).to.deep.equal({ kind: 'absent', reason });
    });
  }
});
