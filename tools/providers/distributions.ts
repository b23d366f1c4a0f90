// Puts servers and libraries into .cache/providers, once, each by the package manager of its language.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { installOnce } from '../../lab/programs.ts';

export const keycloakVersion = '26.7.3';
export const hydraVersion = '2.3.0';

export interface Language {
  readonly install: (folder: string, packages: readonly string[]) => Promise<unknown>;
  /** The command before a program of the folder. */
  readonly start: string;
}

const cache = fileURLToPath(new URL('../../.cache/providers/', import.meta.url));
const run = (cwd: string, command: string, args: readonly string[]) =>
  promisify(execFile)(command, args, { cwd, timeout: 60 * 60_000, maxBuffer: 1 << 26 });

/** The folder of that name, into which `install` has put something. */
export async function installed(name: string, install: (folder: string) => Promise<unknown>): Promise<string> {
  const folder = join(cache, name);
  if (!existsSync(folder)) await installOnce(folder, install);
  return folder;
}

const npm = ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--legacy-peer-deps', '--prefix'];
export const node: Language = {
  start: 'node',
  install: (folder, packages) => run(folder, 'npm', [...npm, folder, ...packages]),
};
const pip = ['-m', 'pip', 'install', '-q', '--disable-pip-version-check', '--target', 'lib'];
export const python: Language = {
  start: 'python3',
  install: (folder, packages) => run(folder, 'python3', [...pip, ...packages]),
};
/** The program is its own, of a library, or, as `tool`, starts the ones of the packages. The tags give Hydra its SQLite. */
export const go = (target: '.' | 'tool', start: string, edits: readonly string[] = []): Language => ({
  start,
  async install(folder, packages) {
    await run(folder, 'go', ['mod', 'init', 'trial']);
    for (const edit of edits) await run(folder, 'go', ['mod', 'edit', edit]);
    await run(folder, 'go', ['get', ...(target === 'tool' ? ['-tool'] : []), ...packages]);
    if (target === '.') await run(folder, 'go', ['mod', 'tidy']);
    await run(folder, 'go', ['build', '-tags', 'sqlite,sqlite_omit_load_extension', '-o', './', target]);
  },
});
/** A starter of Spring Boot. */
export const java: Language = {
  start: "java -cp 'lib/*'",
  async install(folder, [starter = '', version = '']) {
    const id = (name: string) => `<groupId>org.springframework.boot</groupId><artifactId>${name}</artifactId>`;
    const parent = `<parent>${id('spring-boot-starter-parent')}<version>${version}</version></parent>`;
    const pom = `<modelVersion>4.0.0</modelVersion><artifactId>trial</artifactId>${parent}<dependencies><dependency>${id(starter)}</dependency></dependencies>`;
    await writeFile(join(folder, 'pom.xml'), `<project>${pom}</project>`);
    await run(folder, 'mvn', ['-B', '-q', 'dependency:copy-dependencies', '-DoutputDirectory=lib']);
  },
};

/** The folder of an unpacked Keycloak; 180 MB. */
export async function keycloakHome(): Promise<string> {
  const goal = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:unpack';
  const artifact = `-Dartifact=org.keycloak:keycloak-quarkus-dist:${keycloakVersion}:zip`;
  const name = `keycloak-${keycloakVersion}`;
  // The goal leaves a marker in the current folder.
  const unpack = (folder: string) =>
    run(folder, 'mvn', ['-B', '-q', '-C', goal, artifact, `-DoutputDirectory=${folder}`]);
  return join(await installed(name, unpack), name);
}

/** Path of a Hydra; its build takes some minutes and a C compiler, for SQLite. */
export async function hydraBinary(): Promise<string> {
  // `go install` would refuse Hydra's own go.mod for this line of it.
  const pop = 'github.com/gobuffalo/pop/v6=github.com/ory/pop/v6@v6.2.1-0.20241121111754-e5dfc0f3344b';
  const { install } = go('tool', '', [`-replace=${pop}`]);
  const build = (folder: string) => install(folder, [`github.com/ory/hydra/v2@v${hydraVersion}`]);
  return join(await installed(`hydra-${hydraVersion}`, build), 'hydra');
}
