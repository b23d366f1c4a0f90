// Builds the peers that can be built here and finds those that come as binaries. A peer that cannot be had is told, not failed.
import { execFile } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import type { KubeTools } from './kube-api.ts';

const run = promisify(execFile);

export type Built =
  | { readonly kind: 'built'; readonly path: string }
  | { readonly kind: 'absent'; readonly reason: string };

export interface AuthorinoTools extends KubeTools {
  readonly authorino: string;
}

export type FoundAuthorino =
  | { readonly kind: 'found'; readonly tools: AuthorinoTools }
  | { readonly kind: 'absent'; readonly reason: string };

type Environment = Readonly<Record<string, string | undefined>>;

export interface Peers {
  /** Folder with the peers in JavaScript. */
  readonly node: string;
  /** Folder with the binaries of the Go peers. */
  readonly go: Built;
  /** The binary of opa-envoy-plugin. */
  readonly opa: Built;
  /** Authorino, and the Kubernetes API that it needs. */
  readonly authorino: FoundAuthorino;
}

/** Those that need a Go toolchain. */
export const goPeers: readonly string[] = ['go-nothing', 'go-jwt', 'go-jwt-cached', 'rego'];

export async function buildPeers(
  sources: string,
  cacheDirectory: string,
  { withGo }: { readonly withGo: boolean },
): Promise<Peers> {
  const compiler = join(sources, '..', '..', 'node_modules', '.bin', 'tsc');
  await run(compiler, ['-p', join(sources, 'node', 'tsconfig.json')]);
  const notAsked: Built = { kind: 'absent', reason: 'not asked for' };
  const [go, opa, authorino] = await Promise.all([
    withGo ? buildGo(join(sources, 'go'), join(cacheDirectory, 'go')) : notAsked,
    findOpa(process.env),
    findAuthorino(process.env),
  ]);
  return { node: join(cacheDirectory, 'peers'), go, opa, authorino };
}

// The first build fetches the modules that go.sum names and takes minutes; Go keeps what it has built.
async function buildGo(sources: string, output: string): Promise<Built> {
  try {
    await run('go', ['build', '-trimpath', '-o', `${output}/`, './...'], {
      cwd: sources,
      env: { ...process.env, GOTOOLCHAIN: 'local', GOFLAGS: '-mod=readonly', CGO_ENABLED: '0' },
      timeout: 15 * 60_000,
    });
    return { kind: 'built', path: output };
  } catch (error) {
    const { code, stderr = '' } = error as { code?: string | number; stderr?: string };
    if (code === 'ENOENT') return { kind: 'absent', reason: 'no go on the PATH' };
    return { kind: 'absent', reason: `go build: ${stderr.trim().split('\n')[0] ?? 'failed'}` };
  }
}

/** `$OPA_ENVOY_PLUGIN`, or an opa-envoy-plugin on the PATH. */
export async function findOpa(environment: Environment): Promise<Built> {
  const path = await findBinary('opa-envoy-plugin', environment.OPA_ENVOY_PLUGIN, environment);
  return path === undefined
    ? { kind: 'absent', reason: 'no $OPA_ENVOY_PLUGIN, and none on the PATH' }
    : { kind: 'built', path };
}

/** `$AUTHORINO` and the folder `$KUBE_TOOLS`, or what is on the PATH. */
export async function findAuthorino(environment: Environment): Promise<FoundAuthorino> {
  const { AUTHORINO, KUBE_TOOLS } = environment;
  const tool = (name: string): Promise<string | undefined> =>
    findBinary(name, KUBE_TOOLS && join(KUBE_TOOLS, name), environment);
  const [authorino, etcd, apiServer] = await Promise.all([
    findBinary('authorino', AUTHORINO, environment),
    tool('etcd'),
    tool('kube-apiserver'),
  ]);
  if (authorino === undefined) return { kind: 'absent', reason: 'no $AUTHORINO, and none on the PATH' };
  if (etcd === undefined || apiServer === undefined)
    return { kind: 'absent', reason: 'no etcd and kube-apiserver in $KUBE_TOOLS or on the PATH' };
  return { kind: 'found', tools: { authorino, etcd, apiServer } };
}

async function findBinary(
  name: string,
  named: string | undefined,
  { PATH = '' }: Environment,
): Promise<string | undefined> {
  const candidates =
    named === undefined || named === '' ? PATH.split(delimiter).map(directory => join(directory, name)) : [named];
  for (const candidate of candidates) {
    const isThere = await access(candidate, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isThere) return candidate;
  }
  return undefined;
}
