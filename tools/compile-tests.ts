// Compiles the tests and the programs that they start to JavaScript in .compiled/, for a run of many files: a process that loads them
// through tsx needs three times the processor time, and a run starts about sixty.
import { readFile, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';
import { parse } from 'yaml';
import { compiledFile, compiledFolder, mochaConfig, programs } from '../lab/compiled.ts';
import { testGroups } from './test-groups.ts';

interface MochaConfig {
  readonly 'node-option': readonly string[];
  readonly require: string;
}

const project = fileURLToPath(new URL('../', import.meta.url));
const reporter = 'test/support/file-reporter.ts';

/** Compiles all tests, and writes the configuration of mocha for them. */
export async function compileTests(): Promise<void> {
  const {
    'node-option': nodeOptions,
    require: hooks,
    ...rest
  }: MochaConfig = parse(await readFile(`${project}.mocharc.yaml`, 'utf8'));
  await rm(`${project}${compiledFolder}`, { recursive: true, force: true });
  await build({
    absWorkingDir: project,
    entryPoints: [...Object.values(testGroups()).flat(), hooks, reporter, ...programs],
    outdir: compiledFolder,
    outbase: '.',
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node20.19',
    packages: 'external',
    sourcemap: true,
    sourcesContent: false,
    plugins: [sourceUrls],
    logLevel: 'warning',
  });
  const config = {
    ...rest,
    'node-option': nodeOptions.map(option => (option === 'import=tsx' ? 'enable-source-maps' : option)),
    require: compiledFile(hooks),
    reporter: compiledFile(reporter),
  };
  await writeFile(`${project}${mochaConfig}`, JSON.stringify(config));
}

/** Modules find files relative to their source. */
const sourceUrls: Plugin = {
  name: 'source-urls',
  setup(building) {
    building.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, 'utf8');
      return { contents: text.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href)), loader: 'ts' };
    });
  },
};
