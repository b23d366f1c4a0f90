// Shared by all contenders of a bench: the tokens, the issuer's key server, the load process, the cores and a temporary folder.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startTestIssuer, type TestIssuer } from '../../lab/test-issuer.ts';
import { startWireLoadProcess, type WireLoadProcess } from '../load/wire-load-process.ts';
import { type Cores, chooseCores, pin } from '../measure/pinning.ts';
import type { Runtime } from './runtime.ts';
import { type Algorithm, createTokens, type Tokens } from './tokens.ts';

export const projectDirectory = fileURLToPath(new URL('../../', import.meta.url));
export const cacheDirectory = join(projectDirectory, '.cache', 'bench');

export interface BenchLab {
  readonly tokens: Tokens;
  readonly issuer: TestIssuer;
  readonly load: WireLoadProcess;
  readonly cores: Cores | undefined;
  readonly runtime: Runtime;
  /** The path of a file that is deleted with the lab. */
  path(name: string): string;
  /** Writes such a file. */
  file(name: string, content: string | Buffer): Promise<string>;
  stop(): Promise<void>;
}

export async function startBenchLab(algorithm: Algorithm, runtime: Runtime): Promise<BenchLab> {
  const cores = chooseCores();
  await pin(process.pid, cores?.load);
  const [tokens, directory] = await Promise.all([
    createTokens(algorithm, cacheDirectory),
    mkdtemp(join(tmpdir(), 'account-authz-bench-')),
  ]);
  const [issuer, load] = await Promise.all([
    startTestIssuer({ keys: [tokens.publicJwk], metadata: { id_token_signing_alg_values_supported: [algorithm] } }),
    startWireLoadProcess(cores?.load),
  ]);
  return {
    tokens,
    issuer,
    load,
    cores,
    runtime,
    path: name => join(directory, name),
    async file(name, content) {
      const path = join(directory, name);
      await writeFile(path, content);
      return path;
    },
    async stop() {
      load.stop();
      await issuer.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
