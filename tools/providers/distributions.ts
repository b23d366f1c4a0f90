// Puts Keycloak and Hydra into .cache/providers: Keycloak as Maven unpacks it, Hydra as Go builds it. Downloaded once.
import { execFile } from 'node:child_process';
import { access, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const keycloakVersion = '26.7.3';
/** The version in hydra/go.mod. */
export const hydraVersion = '2.3.0';

const run = promisify(execFile);
const cacheDirectory = fileURLToPath(new URL('../../.cache/providers/', import.meta.url));
const hydraModule = fileURLToPath(new URL('hydra/', import.meta.url));
const timeout = 30 * 60_000;

/** A program that `npm run providers` needs is missing. */
export class MissingProgram extends Error {}

const programs = {
  bash: ['--version'],
  curl: ['--version'],
  jq: ['--version'],
  java: ['-version'],
  mvn: ['--version'],
  go: ['version'],
  cc: ['--version'],
} as const;
type Program = keyof typeof programs;

const purposes: Readonly<Record<Program, string>> = {
  bash: 'it runs the commands of the provider pages',
  curl: 'the commands of the provider pages call it',
  jq: 'the commands of the provider pages call it',
  java: 'it runs Keycloak (17 or newer)',
  mvn: 'it downloads Keycloak',
  go: 'it downloads and builds Hydra',
  cc: 'it compiles the SQLite of Hydra',
};

export async function requirePrograms(...names: readonly Program[]): Promise<void> {
  for (const name of names) {
    await run(name, programs[name]).catch((error: NodeJS.ErrnoException) => {
      const what = error.code === 'ENOENT' ? 'is not on the PATH' : 'does not run';
      throw new MissingProgram(`${name} ${what}; ${purposes[name]}`);
    });
  }
}

/** The folder of an unpacked Keycloak. */
export async function keycloakHome(say: (text: string) => void): Promise<string> {
  await requirePrograms('java');
  const folder = await completeFolder(`keycloak-${keycloakVersion}`, async unfinished => {
    await requirePrograms('mvn');
    say(`Maven downloads Keycloak ${keycloakVersion} (180 MB)`);
    const goal = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:unpack';
    const artifact = `-Dartifact=org.keycloak:keycloak-quarkus-dist:${keycloakVersion}:zip`;
    // The goal leaves a marker in the current folder.
    const output = `-DoutputDirectory=${unfinished}`;
    await run('mvn', ['-B', '-q', '-C', goal, artifact, output], { cwd: unfinished, timeout });
  });
  return join(folder, `keycloak-${keycloakVersion}`);
}

/** Path of a built Hydra. */
export async function hydraBinary(say: (text: string) => void): Promise<string> {
  const folder = await completeFolder(`hydra-${hydraVersion}`, async unfinished => {
    await requirePrograms('go', 'cc');
    say(`Go downloads and builds Hydra ${hydraVersion}: some minutes`);
    const args = ['build', '-tags', 'sqlite,sqlite_omit_load_extension', '-o', join(unfinished, 'hydra')];
    const env = { ...process.env, CGO_ENABLED: '1', GOTOOLCHAIN: 'local', GOFLAGS: '-mod=readonly' };
    await run('go', [...args, 'github.com/ory/hydra/v2'], { cwd: hydraModule, env, timeout });
  });
  return join(folder, 'hydra');
}

// Atomic: filled in a temporary folder and then renamed.
async function completeFolder(name: string, fill: (unfinished: string) => Promise<void>): Promise<string> {
  const folder = join(cacheDirectory, name);
  const isThere = await access(folder).then(
    () => true,
    () => false,
  );
  if (isThere) return folder;
  await mkdir(cacheDirectory, { recursive: true });
  const unfinished = await mkdtemp(join(cacheDirectory, `.${name}-`));
  try {
    await fill(unfinished);
    await rename(unfinished, folder);
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    throw error;
  }
  return folder;
}
