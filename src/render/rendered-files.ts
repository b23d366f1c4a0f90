// The text of a rendered file, which says how it was made, and the writing of such files: nothing that a person made is replaced.
import { createHash, randomUUID } from 'node:crypto';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadBoundedFile } from '../files/bounded-file.ts';
import { printable } from '../text/printable.ts';
import { version } from '../version.ts';
import type { RenderedFile } from './targets.ts';
import { toYaml } from './tree.ts';

export interface NamedText {
  readonly name: string;
  readonly text: string;
}

const mark = '# Made by account-authz ';
const renderCommand = 'account-authz render ';

/** The first line is the mark; the second has a checksum of what follows it, by which an edit shows. */
export function toMarkedText({ introduction, content: trees }: RenderedFile, commandLine: string): string {
  const content = typeof trees === 'string' ? `\n${trees}` : toYaml(trees, introduction);
  return `${mark}${version}: ${commandLine}\n${checksumLine(content)}${content}`;
}

/** The command that makes the bootstrap again for this configuration: with the options by which `render` made it, if it did. */
export function renderCommandFor(bytes: Uint8Array, config: string): string {
  const [first = ''] = Buffer.from(bytes).toString().split('\n', 1);
  const start = first.startsWith(mark) ? first.indexOf(renderCommand) : -1;
  if (start === -1) return `${renderCommand}envoy-parts ${toCommandLine(['--config', config])}`;
  // The words of an option and its value.
  const [target, ...options] = first.slice(start + renderCommand.length).split(' --');
  const others = options.filter(each => !/^config[ =]/.test(each));
  const made = [target, ...others].map(each => printable(each ?? '', 1024)).join(' --');
  return `${renderCommand}${made} ${toCommandLine(['--config', config])}`;
}

/** For a POSIX shell, in one line. */
export function toCommandLine(words: readonly string[]): string {
  return words
    .map(word => printable(word, 1024))
    .map(word => (/^[\w./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
    .join(' ');
}

function checksumLine(content: string): string {
  const checksum = createHash('sha256').update(content).digest('hex').slice(0, 12);
  return `# Do not edit it: change the configuration or the options, and render again (checksum ${checksum}).\n`;
}

/** All of them or none; returns what stands against it. */
export async function writeRenderedFiles(folder: string, files: readonly NamedText[]): Promise<string | undefined> {
  const shown = printable(folder, 1024);
  try {
    await mkdir(folder, { recursive: true });
    for (const { name } of files) {
      const problem = await overwriteProblem(join(folder, name));
      if (problem !== undefined) return `--out: ${shown}/${name} ${problem}`;
    }
    for (const { name, text } of files) await replaceFile(join(folder, name), text);
    return undefined;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
    return `--out: ${shown} cannot be written${code}`;
  }
}

async function overwriteProblem(path: string): Promise<string | undefined> {
  const existing = await loadBoundedFile(path);
  if (existing.kind === 'problem')
    return existing.reason === 'missing' ? undefined : `cannot be replaced: ${existing.problem}`;
  const [first = '', second = '', ...content] = Buffer.from(existing.bytes).toString().split('\n');
  if (!first.startsWith(mark)) return 'was not made by render: move it away or use another folder';
  if (`${second}\n` === checksumLine(content.join('\n'))) return undefined;
  return 'was edited after render made it: move it away or use another folder';
}

// Whoever reads it sees the old file or the new one, never a part.
async function replaceFile(path: string, text: string): Promise<void> {
  const unfinished = `${path}.${randomUUID()}`;
  try {
    await writeFile(unfinished, text, { flag: 'wx' });
    await rename(unfinished, path);
  } finally {
    await rm(unfinished, { force: true });
  }
}
