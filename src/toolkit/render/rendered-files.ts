// The files that `render` makes: their text, which says how it was made, and their writing. Nothing that a person made is replaced.
import { hash, randomUUID } from 'node:crypto';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadBoundedFile } from '../../files/bounded-file.ts';
import { version } from '../../package.ts';
import { printable } from '../../text/printable.ts';
import { errorCode } from '../../text/problem.ts';
import { lineWidth, type Members, type Tree, toYaml, wrap } from '../envoy-settings/tree.ts';

export interface RenderedFile {
  readonly name: string;
  /** Lines of a comment at its top. */
  readonly introduction: readonly string[];
  readonly content: readonly Tree[] | string;
}

/** The first begins with what the data plane cannot do. One without content is not made. */
export type RenderedFiles = readonly [RenderedFile, ...RenderedFile[]];

export interface NamedText {
  readonly name: string;
  readonly text: string;
}

/** The beginning of the first line. */
const mark = '# Made by account-authz ';

export function renderedFile(
  name: string,
  content: RenderedFile['content'],
  introduction: readonly string[] = [],
): RenderedFile {
  return { name, introduction, content };
}

/** An object of Kubernetes. */
export function manifest(apiVersion: string, kind: string, metadata: Members, spec: Members): Members {
  return { apiVersion, kind, metadata, spec };
}

/** An RFC 1123 label, as Kubernetes wants it. */
export function isKubernetesName(text: string): boolean {
  return /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(text);
}

/** The first line is the mark; the second has a checksum of what follows it, by which an edit shows. */
export function toMarkedText({ introduction, content: trees }: RenderedFile, commandLine: string): string {
  const content =
    typeof trees === 'string'
      ? `\n${trees}`
      : toYaml(
          trees,
          introduction.flatMap(line => wrap(line, lineWidth)),
        );
  return `${mark}${version}: ${commandLine}\n${checksumLine(content)}${content}`;
}

/** Whether `render` made the file, by what its first line says. */
export function isRendered(bytes: Uint8Array): boolean {
  return Buffer.from(bytes.subarray(0, mark.length)).toString() === mark;
}

/** For a POSIX shell, in one line. */
export function toCommandLine(words: readonly string[]): string {
  return words
    .map(word => printable(word, 1024))
    .map(word => (/^[\w./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`))
    .join(' ');
}

function checksumLine(content: string): string {
  const checksum = hash('sha256', content, 'hex').slice(0, 12);
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
