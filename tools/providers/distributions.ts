// Puts Keycloak and Hydra into .cache/providers, once: Keycloak as Maven unpacks it, Hydra as Go builds it.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { installOnce } from '../../lab/programs.ts';

export const keycloakVersion = '26.7.3';
export const hydraVersion = '2.3.0';

const run = promisify(execFile);
const cache = fileURLToPath(new URL('../../.cache/providers/', import.meta.url));
const timeout = 30 * 60_000;

/** The folder of an unpacked Keycloak; 180 MB. */
export async function keycloakHome(): Promise<string> {
  const folder = join(cache, `keycloak-${keycloakVersion}`);
  const goal = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:unpack';
  const artifact = `-Dartifact=org.keycloak:keycloak-quarkus-dist:${keycloakVersion}:zip`;
  if (!existsSync(folder))
    // The goal leaves a marker in the current folder.
    await installOnce(folder, cwd =>
      run('mvn', ['-B', '-q', '-C', goal, artifact, `-DoutputDirectory=${cwd}`], { cwd, timeout }),
    );
  return join(folder, `keycloak-${keycloakVersion}`);
}

/** Path of a Hydra; its build takes some minutes and a C compiler, for SQLite. */
export async function hydraBinary(): Promise<string> {
  const folder = join(cache, `hydra-${hydraVersion}`);
  if (!existsSync(folder))
    await installOnce(folder, async cwd => {
      const go = (...args: readonly string[]) =>
        run('go', args, { cwd, env: { ...process.env, CGO_ENABLED: '1' }, timeout });
      await go('mod', 'init', 'hydra');
      // `go install` would refuse Hydra's own go.mod for this line of it.
      await go(
        'mod',
        'edit',
        '-replace=github.com/gobuffalo/pop/v6=github.com/ory/pop/v6@v6.2.1-0.20241121111754-e5dfc0f3344b',
      );
      await go('get', '-tool', `github.com/ory/hydra/v2@v${hydraVersion}`);
      await go('build', '-tags', 'sqlite,sqlite_omit_load_extension', '-o', 'hydra', 'github.com/ory/hydra/v2');
    });
  return join(folder, 'hydra');
}
