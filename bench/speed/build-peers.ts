// Builds the peers. One that cannot be built, for lack of Go or access to its modules, is reported as absent, not as a failure.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';

const run = promisify(execFile);

export type Built =
  | { readonly kind: 'built'; readonly path: string }
  | { readonly kind: 'absent'; readonly reason: string };

export interface Peers {
  /** Folder with the peers in JavaScript. */
  readonly node: string;
  /** Folder with our Go services. */
  readonly go: Built;
  readonly opa: Built;
  readonly authorino: Built;
}

export async function buildPeers(sources: string, cacheDirectory: string, withGo: boolean): Promise<Peers> {
  const node = join(cacheDirectory, 'peers');
  await build({
    entryPoints: [join(sources, 'node', 'nothing.ts')],
    outdir: node,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
  });
  // Sequential: each build uses all cores.
  const goProgram = async (module: string, output: string, pattern: string): Promise<Built> =>
    withGo ? buildGo(join(sources, module), join(cacheDirectory, output), pattern) : notRequested;
  return {
    node,
    go: await goProgram('go', 'go/', './...'),
    opa: await goProgram(
      'opa',
      'opa-envoy-plugin',
      'github.com/open-policy-agent/opa-envoy-plugin/cmd/opa-envoy-plugin',
    ),
    authorino: await goProgram('authorino', 'authorino', '.'),
  };
}

const notRequested: Built = { kind: 'absent', reason: 'not requested' };

// The first build downloads the modules in go.sum and takes minutes; Go caches the result.
async function buildGo(cwd: string, output: string, pattern: string): Promise<Built> {
  const env = { ...process.env, GOTOOLCHAIN: 'local', GOFLAGS: '-mod=readonly', CGO_ENABLED: '0' };
  try {
    await run('go', ['build', '-o', output, pattern], { cwd, env, timeout: 30 * 60_000 });
    return { kind: 'built', path: output };
  } catch (error) {
    const { code, stderr = '' } = error as { code?: string | number; stderr?: string };
    if (code === 'ENOENT') return { kind: 'absent', reason: 'no go on the PATH' };
    const [reason = 'failed'] = stderr.trim().split('\n').slice(-1);
    return { kind: 'absent', reason: `go build: ${reason}` };
  }
}
