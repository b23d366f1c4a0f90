// Makes dist/: the product and all that it imports in a few files, so that Node reads 1 MB of text instead of 8. V8 keeps the text of
// what it has loaded, and lets the heap grow to a multiple of what is alive: docs/dev/performance.md has the figures.
import { chmod, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { build, type Metafile } from 'esbuild';

const project = fileURLToPath(new URL('../', import.meta.url));

// What CommonJS packages expect of a module's surroundings.
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
  entryPoints: {
    main: 'src/main.ts',
    'config-thread-entry': 'src/config/config-thread-entry.ts',
    'revocation-thread-entry': 'src/config/revocation-thread-entry.ts',
    'key-thread-entry': 'src/keys/key-thread-entry.ts',
  },
  outdir: 'dist',
  bundle: true,
  splitting: true,
  platform: 'node',
  format: 'esm',
  target: 'node20.19',
  banner: { js: surroundings },
  // Names stay: the log tells where a fault came from.
  minifyWhitespace: true,
  minifySyntax: true,
  legalComments: 'none',
  metafile: true,
  logLevel: 'warning',
});
for (const file of Object.keys(metafile.outputs)) {
  // V8 keeps a text with one character beyond Latin-1 in two bytes each. esbuild escapes them where it may, which is neither in regular
  // expressions nor in tagged templates.
  if ((await readFile(`${project}${file}`)).some(byte => byte > 0x7f)) throw new Error(`${file} is not ASCII`);
}
await chmod(`${project}dist/main.js`, 0o755);
await writeFile(`${project}dist/third-party-licenses.txt`, await licencesOf(metafile));

/** Every package of which something is in the bundle, with the text of its licence. */
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
