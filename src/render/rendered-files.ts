// The text of a rendered file, which says how it was made, and the writing of such files: nothing that a person made is replaced.
import { createHash, randomUUID } from 'node:crypto';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { loadBoundedFile } from '../files/bounded-file.ts';
import { printable } from '../text/printable.ts';
import { errorCode } from '../text/problem.ts';
import { version } from '../version.ts';
import { parseRenderOptions, renderOptions } from './options.ts';
import { type RenderedFile, targets } from './targets.ts';
import { toYaml } from './tree.ts';

export interface NamedText {
  readonly name: string;
  readonly text: string;
}

const mark = '# Made by account-authz ';
const renderCommand = 'account-authz render ';
// parseArgs takes quadratic time.
const maxCommandLine = 8192;

/** The first line is the mark; the second has a checksum of what follows it, by which an edit shows. */
export function toMarkedText({ introduction, content: trees }: RenderedFile, commandLine: string): string {
  const content = typeof trees === 'string' ? `\n${trees}` : toYaml(trees, introduction);
  return `${mark}${version}: ${commandLine}\n${checksumLine(content)}${content}`;
}

/** The command that makes the bootstrap again for this configuration: with the options by which `render` made it, if it did. */
export function renderCommandFor(bytes: Uint8Array, config: string): string {
  const [first = ''] = Buffer.from(bytes).toString().split('\n', 1);
  const start = first.startsWith(mark) ? first.indexOf(renderCommand) : -1;
  const made =
    start === -1 || first.length > maxCommandLine ? undefined : parseMade(first.slice(start + renderCommand.length));
  return `${renderCommand}${toCommandLine([...(made ?? ['envoy-parts']), '--config', config])}`;
}

/**
 * The target and the options of a line that `toCommandLine` made, without --config; undefined if `render` would not take them.
 * A file can say anything there, and its reader copies the command into a shell.
 */
function parseMade(line: string): readonly string[] | undefined {
  const [target = '', ...args] = (line.match(/(?:'[^']*'|\\.|[^' \\])+/g) ?? []).map(fromShellWord);
  if (!Object.hasOwn(targets, target)) return undefined;
  try {
    const { config: _, ...values } = parseArgs({
      args,
      options: { ...renderOptions, config: { type: 'string' } },
    }).values;
    const isTaken = Object.keys(values).every(name => targets[target]?.options.some(option => option === name));
    if (!isTaken || typeof parseRenderOptions(values) === 'string') return undefined;
    return [
      target,
      ...Object.entries(values).flatMap(([name, value]) => [value].flat().flatMap(each => [`--${name}`, each])),
    ];
  } catch {
    return undefined;
  }
}

function fromShellWord(word: string): string {
  return word.replaceAll(/'([^']*)'|\\(.)/g, (_, quoted: string | undefined, escaped: string) => quoted ?? escaped);
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

/** Returns what stands against it: then nothing was written, unless a disk failed on the way. */
export async function writeRenderedFiles(
  folder: string,
  files: readonly NamedText[],
  options: { readonly replacesEdited: boolean },
): Promise<string | undefined> {
  const shown = printable(folder, 1024);
  try {
    await mkdir(folder, { recursive: true });
    for (const { name } of files) {
      const problem = await overwriteProblem(join(folder, name), options);
      if (problem !== undefined) return `--out: ${shown}/${name} ${problem}`;
    }
    for (const { name, text } of files) await replaceFile(join(folder, name), text);
    return undefined;
  } catch (error) {
    const code = errorCode(error);
    return `--out: ${shown} cannot be written${code === undefined ? '' : ` (${code})`}`;
  }
}

async function overwriteProblem(
  path: string,
  { replacesEdited }: { readonly replacesEdited: boolean },
): Promise<string | undefined> {
  const existing = await loadBoundedFile(path);
  if (existing.kind === 'problem')
    return existing.reason === 'missing' ? undefined : `cannot be replaced: ${existing.problem}`;
  const [first = '', second = '', ...content] = Buffer.from(existing.bytes).toString().split('\n');
  if (!first.startsWith(mark)) return 'was not made by render: move it away or use another folder';
  if (replacesEdited || `${second}\n` === checksumLine(content.join('\n'))) return undefined;
  return 'was edited after render made it: move it away, use another folder, or --force';
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
