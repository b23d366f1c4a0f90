// jq for the queries of the documents: finds the program, or installs the one that is written in Go once.
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const version = '0.12.17';
const cacheDirectory = fileURLToPath(new URL('../../.cache/gojq/', import.meta.url));
const run = promisify(execFile);

let found: Promise<string> | undefined;

/** A folder for the PATH in which `jq` is: where `$JQ_BIN` or the PATH has it, or where gojq is built from the Go module proxy. */
export function jqDirectory(): Promise<string> {
  found ??= findJq();
  return found;
}

async function findJq(): Promise<string> {
  const named = process.env.JQ_BIN;
  if (named !== undefined && named !== '') return dirname(named);
  const which = await run('sh', ['-c', 'command -v jq']).catch(() => undefined);
  if (which !== undefined) return dirname(which.stdout.trim());
  const directory = join(cacheDirectory, version);
  if (!(await runs(join(directory, 'jq')))) await install(directory);
  return directory;
}

function runs(binary: string): Promise<boolean> {
  return run(binary, ['--version']).then(
    () => true,
    () => false,
  );
}

// Complete or absent: built beside its place and then renamed to it.
async function install(directory: string): Promise<void> {
  await mkdir(cacheDirectory, { recursive: true });
  const unfinished = await mkdtemp(join(cacheDirectory, `.${version}-`));
  try {
    const env = { ...process.env, GOBIN: unfinished, GOFLAGS: '-trimpath', CGO_ENABLED: '0' };
    await run('go', ['install', `github.com/itchyny/gojq/cmd/gojq@v${version}`], { env });
    await rename(join(unfinished, 'gojq'), join(unfinished, 'jq'));
    await rename(unfinished, directory);
  } catch (cause) {
    await rm(unfinished, { recursive: true, force: true });
    if (await runs(join(directory, 'jq'))) return;
    throw new Error(`jq cannot be had: no $JQ_BIN, none on the PATH, and go could not install gojq ${version}`, {
      cause,
    });
  }
}
