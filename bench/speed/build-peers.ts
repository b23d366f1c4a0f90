// Builds the peers that can be built here and finds the one that comes as a binary. A peer that cannot be had is told, not failed.
import { execFile } from 'node:child_process';
import { access, constants } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export type Built =
  | { readonly kind: 'built'; readonly path: string }
  | { readonly kind: 'absent'; readonly reason: string };

export interface Peers {
  /** Folder with the peers in JavaScript. */
  readonly node: string;
  /** Folder with the binaries of the Go peers. */
  readonly go: Built;
  /** The binary of opa-envoy-plugin. */
  readonly opa: Built;
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
  const [go, opa] = await Promise.all([
    withGo ? buildGo(join(sources, 'go'), join(cacheDirectory, 'go')) : notAsked,
    findOpa(process.env),
  ]);
  return { node: join(cacheDirectory, 'peers'), go, opa };
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
export async function findOpa(environment: Readonly<Record<string, string | undefined>>): Promise<Built> {
  const { OPA_ENVOY_PLUGIN: named, PATH: path = '' } = environment;
  const candidates =
    named === undefined || named === ''
      ? path.split(delimiter).map(directory => join(directory, 'opa-envoy-plugin'))
      : [named];
  for (const candidate of candidates) {
    const isThere = await access(candidate, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isThere) return { kind: 'built', path: candidate };
  }
  return { kind: 'absent', reason: 'no $OPA_ENVOY_PLUGIN, and none on the PATH' };
}
