// A real Chromium for tests: finds or installs the program, and runs it for pages on loopback.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream, existsSync } from 'node:fs';
import { chmod, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createBrotliDecompress } from 'node:zlib';
import { type Browser, chromium, type Page } from 'playwright-core';
import { installOnce } from '../../lab/programs.ts';

/** Carries Chromium's headless shell for x86-64 with the libraries and a font that a bare machine lacks. */
const carrier = {
  name: '@sparticuz/chromium',
  version: '153.0.0',
  integrity: 'sha512-jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA==',
};

const cacheDirectory = fileURLToPath(new URL('../../.cache/chromium/', import.meta.url));
const run = promisify(execFile);

/** Runs until closed. It uses the network only for the pages that it is given. */
export async function startBrowser(): Promise<Browser> {
  const { executablePath, env } = await findChromium();
  return chromium.launch({ executablePath, env: { ...process.env, ...env } });
}

/** A screenshot of the visible part of the page. */
export async function picture(page: Page): Promise<Buffer> {
  // On a busy machine Chromium fails to capture a page before its first frame is drawn.
  await page.evaluate('new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve)))');
  return page.screenshot();
}

interface Program {
  readonly executablePath: string;
  readonly env: Readonly<Record<string, string>>;
}

/** `$CHROMIUM_BIN`, a Chromium on the PATH (Debian's package puts it there), or one from the npm registry in `.cache/chromium/`. */
async function findChromium(): Promise<Program> {
  const named = process.env.CHROMIUM_BIN;
  if (named !== undefined && named !== '') return { executablePath: named, env: {} };
  const folders = (process.env.PATH ?? '').split(':');
  const paths = ['chromium', 'chromium-headless-shell', 'google-chrome'].flatMap(name =>
    folders.map(folder => join(folder, name)),
  );
  const executablePath = paths.find(path => existsSync(path));
  if (executablePath !== undefined) return { executablePath, env: {} };
  const directory = join(cacheDirectory, carrier.version);
  if (!existsSync(directory)) await installOnce(directory, unpackCarrier);
  const env = { LD_LIBRARY_PATH: join(directory, 'lib'), FONTCONFIG_FILE: join(directory, 'fonts.conf') };
  return { executablePath: join(directory, 'chromium'), env };
}

async function unpackCarrier(directory: string): Promise<void> {
  if (process.arch !== 'x64') throw new Error(`${carrier.name} has none for ${process.arch}`);
  await run('npm', ['pack', '--silent', '--ignore-scripts', `${carrier.name}@${carrier.version}`], { cwd: directory });
  const archive = join(directory, `sparticuz-chromium-${carrier.version}.tgz`);
  const integrity = `sha512-${createHash('sha512')
    .update(await readFile(archive))
    .digest('base64')}`;
  if (integrity !== carrier.integrity) throw new Error(`${carrier.name} ${carrier.version} is not what it was`);
  await run('tar', ['-xzf', archive, '-C', directory, '--strip-components=2', 'package/bin']);
  await rm(archive);
  for (const name of ['chromium', 'al2023.tar', 'fonts.tar', 'swiftshader.tar'])
    await decompress(join(directory, name));
  for (const name of ['al2023.tar', 'fonts.tar', 'swiftshader.tar']) {
    await run('tar', ['-xf', join(directory, name), '-C', directory]);
    await rm(join(directory, name));
  }
  await chmod(join(directory, 'chromium'), 0o755);
  await writeFile(join(directory, 'fonts.conf'), fontConfiguration(directory));
}

async function decompress(path: string): Promise<void> {
  await pipeline(createReadStream(`${path}.br`), createBrotliDecompress(), createWriteStream(path));
  await rm(`${path}.br`);
}

// Fonts of the machine, and the bundled one for a machine without fonts. The folder is named by its final path, not by the temporary one.
function fontConfiguration(unfinished: string): string {
  const fonts = join(unfinished, '..', carrier.version, 'fonts');
  return `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <dir>${fonts}</dir>
</fontconfig>
`;
}
