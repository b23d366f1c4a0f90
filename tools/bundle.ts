// Builds dist/: bundles the product and its dependencies into a few files, so that Node reads 1 MB of text instead of 8. V8 keeps the
// text of loaded scripts, and lets the heap grow to a multiple of the live objects: docs/dev/performance.md has the figures.
import { chmod, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { build, type Metafile } from 'esbuild';

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

await rm(`${project}dist`, { recursive: true, force: true });
const { metafile } = await build({
  absWorkingDir: project,
  entryPoints: { main: 'src/main.ts', 'compare-worker': 'src/commands/compare-worker.ts' },
  outdir: 'dist',
  bundle: true,
  splitting: true,
  platform: 'node',
  format: 'esm',
  target: 'node20.19',
  banner: { js: surroundings },
  // Keeps names, so that stack traces in the log are readable.
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none',
  metafile: true,
  logLevel: 'warning',
});
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
