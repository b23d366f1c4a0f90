// What the image runs the product with, read off the Dockerfile: the Node of its base, the flags of its entrypoint, its environment.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cacheDirectory, projectDirectory } from './lab.ts';
import { nodeBinary } from './node-binary.ts';

export interface Runtime {
  readonly node: string;
  /** Of Node, before the product's file. */
  readonly flags: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

export async function imageRuntime(): Promise<Runtime> {
  const dockerfile = await readFile(join(projectDirectory, 'Dockerfile'), 'utf8');
  const major = lastMatch(dockerfile, /^ARG RUNTIME_IMAGE=\S*\/nodejs(\d+)-/gm);
  const entrypoint = JSON.parse(lastMatch(dockerfile, /^ENTRYPOINT (\[.*\])$/gm)) as readonly string[];
  const variables = lastMatch(dockerfile, /^ENV (.*)$/gm).split(' ');
  return {
    node: await nodeBinary(major, cacheDirectory),
    flags: entrypoint.slice(1, -1),
    environment: Object.fromEntries(variables.map(each => each.split('=', 2))),
  };
}

function lastMatch(text: string, pattern: RegExp): string {
  const found = [...text.matchAll(pattern)].at(-1)?.[1];
  if (found === undefined) throw new Error(`the Dockerfile has nothing like ${pattern.source}`);
  return found;
}
