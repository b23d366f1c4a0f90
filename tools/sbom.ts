// Writes a CycloneDX SBOM of dist/, by npm from the lockfile: the production dependencies, the only ones in the
// bundle (test/tools/supply-chain.test.ts compares them). Without a file name it writes to standard output.
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const project = fileURLToPath(new URL('../', import.meta.url));

export interface SbomComponent {
  readonly 'bom-ref': string;
  readonly name: string;
  readonly version: string;
  readonly hashes?: readonly unknown[];
  readonly properties?: readonly { readonly name: string; readonly value: string }[];
}

export interface Sbom {
  readonly metadata: { readonly component: SbomComponent };
  readonly components: readonly SbomComponent[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

export async function makeSbom(): Promise<Sbom> {
  const sbom = withoutDevelopment(await npmSbom());
  const { name } = JSON.parse(await readFile(`${project}package.json`, 'utf8')) as { readonly name: string };
  // npm uses the name of the folder.
  return { ...sbom, metadata: { ...sbom.metadata, component: { ...sbom.metadata.component, name } } };
}

async function npmSbom(): Promise<Sbom> {
  const options = ['--sbom-format', 'cyclonedx', '--sbom-type', 'application', '--package-lock-only'];
  const { stdout } = await promisify(execFile)('npm', ['sbom', ...options], {
    cwd: project,
    maxBuffer: 64 * 1024 * 1024,
  });
  return JSON.parse(stdout) as Sbom;
}

// Not by --omit dev: npm 11 then also omits packages that both a development and a production dependency need (protobufjs).
function withoutDevelopment(sbom: Sbom): Sbom {
  const components = sbom.components.filter(({ properties = [] }) =>
    properties.every(({ name }) => name !== 'cdx:npm:package:development'),
  );
  const kept = new Set([sbom.metadata.component, ...components].map(each => each['bom-ref']));
  const dependencies = sbom.dependencies
    .filter(({ ref }) => kept.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter(each => kept.has(each)) }));
  return { ...sbom, components, dependencies };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const text = `${JSON.stringify(await makeSbom(), undefined, 2)}\n`;
  const [file] = process.argv.slice(2);
  if (file === undefined) process.stdout.write(text);
  else await writeFile(file, text);
}
