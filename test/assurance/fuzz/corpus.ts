// The corpus: inputs that earlier runs kept, one file each under test/assurance/fuzz/corpus/<target>/, named by digest.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FuzzTarget } from './target.ts';

export const corpusDirectory = fileURLToPath(new URL('corpus/', import.meta.url));

export interface CorpusInput {
  readonly file: string;
  readonly input: Buffer;
}

export function loadCorpus(target: FuzzTarget): readonly CorpusInput[] {
  const directory = join(corpusDirectory, target.name);
  if (!existsSync(directory)) return [];
  return readdirSync(directory)
    .toSorted()
    .map(file => ({ file, input: target.fromFile(readFileSync(join(directory, file))) }));
}

/** Writes the input as `<word>-<digest>` and returns the file name. */
export function keepInput(target: FuzzTarget, word: string, input: Buffer): string {
  const bytes = target.toFile(input);
  const name = `${word}-${createHash('sha256').update(bytes).digest('hex').slice(0, 16)}`;
  mkdirSync(join(corpusDirectory, target.name), { recursive: true });
  writeFileSync(join(corpusDirectory, target.name, name), bytes);
  return join(target.name, name);
}
