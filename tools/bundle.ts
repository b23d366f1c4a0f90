// Builds dist/: bundles the product and its dependencies into a few files, so that Node reads 1 MB of text instead of 8. V8 keeps the
// text of loaded scripts, and lets the heap grow to a multiple of the live objects: docs/dev/performance.md has the figures.
// `serve` is one file: Node and V8 keep records of each module and its exports. It is CommonJS: an ES import of a module of Node reads all
// its exports, and so loads what they need.
import { chmod, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { type BuildOptions, build, type Metafile, type Plugin, transform } from 'esbuild';

const project = fileURLToPath(new URL('../', import.meta.url));

// Globals that CommonJS packages expect.
const surroundings = `
import { createRequire as bundleCreateRequire } from 'node:module';
import { dirname as bundleDirname } from 'node:path';
import { fileURLToPath as bundleFileURLToPath } from 'node:url';
const require = bundleCreateRequire(import.meta.url);
const __filename = bundleFileURLToPath(import.meta.url);
const __dirname = bundleDirname(__filename);
`;

// Our own names stay, so that stack traces in the log are readable.
const shortNamesInPackages: Plugin = {
  name: 'short names in packages',
  setup({ onLoad }) {
    onLoad({ filter: /node_modules.*\.[cm]?js$/ }, async ({ path }) => {
      const { code } = await transform(await readFile(path, 'utf8'), { minifyIdentifiers: true });
      return { contents: code };
    });
  },
};

const serveApart: Plugin = {
  name: 'serve apart',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /\/commands\/serve\.ts$/ }, () => ({ path: 'serve', namespace: 'apart' }));
    onResolve({ filter: /\/serve\.cjs$/ }, ({ path }) => ({ path, external: true }));
    onLoad({ filter: /./, namespace: 'apart' }, () => ({
      contents: "export const { command } = require('./serve.cjs');",
    }));
  },
};

const options = {
  absWorkingDir: project,
  outdir: 'dist',
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20.19',
  banner: { js: surroundings },
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none',
  metafile: true,
  logLevel: 'warning',
} as const satisfies BuildOptions;

await rm(`${project}dist`, { recursive: true, force: true });
const builds = await Promise.all([
  build({
    ...options,
    entryPoints: { serve: 'src/commands/serve.ts' },
    format: 'cjs',
    outExtension: { '.js': '.cjs' },
    define: { 'import.meta.url': 'bundleUrl' },
    banner: { js: "const bundleUrl=require('node:url').pathToFileURL(__filename).href;" },
    plugins: [shortNamesInPackages],
  }),
  build({
    ...options,
    entryPoints: { main: 'src/main.ts', 'compare-worker': 'src/commands/compare-worker.ts' },
    splitting: true,
    plugins: [shortNamesInPackages, serveApart],
  }),
]);
const metafile: Metafile = {
  inputs: Object.assign({}, ...builds.map(({ metafile }) => metafile.inputs)),
  outputs: Object.assign({}, ...builds.map(({ metafile }) => metafile.outputs)),
};
for (const file of Object.keys(metafile.outputs)) {
  // V8 stores a text with a character beyond Latin-1 in two bytes per character. esbuild escapes such characters where the syntax allows it,
  // which is neither in regular expressions nor in tagged templates.
  if ((await readFile(`${project}${file}`)).some(byte => byte > 0x7f)) throw new Error(`${file} is not ASCII`);
}
await chmod(`${project}dist/main.js`, 0o755);
await writeFile(`${project}dist/third-party-licenses.txt`, await licencesOf(metafile));

/** Every package with code in the bundle, with the text of its licence. */
async function licencesOf({ inputs }: Metafile): Promise<string> {
  const directories = new Set(
    Object.keys(inputs).flatMap(file => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file) ?? []),
  );
  const texts = [...directories].sort().map(async directory => {
    const { name, version, license } = JSON.parse(await readFile(`${project}${directory}/package.json`, 'utf8')) as {
      readonly name: string;
      readonly version: string;
      readonly license: string;
    };
    const file = (await readdir(`${project}${directory}`)).find(each => /^licen[cs]e/i.test(each));
    const text = file === undefined ? '' : await readFile(`${project}${directory}/${file}`, 'utf8');
    return `${name} ${version} (${license})\n\n${text.trim()}\n`;
  });
  return (await Promise.all(texts)).join(`\n${'-'.repeat(80)}\n\n`);
}
