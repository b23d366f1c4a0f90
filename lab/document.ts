// Reads Markdown for the tests: fenced blocks with their language and line.
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const project = new URL('../', import.meta.url);

export interface Block {
  /** The line of the opening fence, 1-based. */
  readonly line: number;
  /** Empty if the fence names none. */
  readonly language: string;
  readonly text: string;
}

export interface Page {
  readonly path: string;
  readonly text: string;
  readonly blocks: readonly Block[];
}

/** Every page: those at the top of the repository, and all under docs/. */
export function allPages(): readonly Page[] {
  const markdown = (folder: string, recursive: boolean): string[] =>
    readdirSync(fileURLToPath(new URL(folder, project)), { recursive, encoding: 'utf8' })
      .filter(name => name.endsWith('.md'))
      .map(name => `${folder}${name}`);
  return [...markdown('./', false), ...markdown('docs/', true)].toSorted().map(name => {
    const path = name.replace(/^\.\//, '');
    const text = readFileSync(new URL(path, project), 'utf8');
    return { path, text, blocks: blocksOf(text) };
  });
}

export function blocksOf(text: string): readonly Block[] {
  const blocks: { line: number; language: string; text: string }[] = [];
  let open: { indent: number; line: number; language: string; text: string } | undefined;
  for (const [i, line] of text.split('\n').entries()) {
    const [, indent = '', language = ''] = /^( *)```([a-z]*)$/.exec(line) ?? [undefined];
    const isFence = /^ *```/.test(line);
    if (open === undefined) {
      if (isFence) open = { indent: indent.length, line: i + 1, language, text: '' };
    } else if (isFence) {
      blocks.push({ line: open.line, language: open.language, text: open.text });
      open = undefined;
    } else {
      open.text += `${line.slice(open.indent)}\n`;
    }
  }
  return blocks;
}

/** The block of this language that contains the text; throws unless there is exactly one. */
export function readSnippet(path: string, language: string, holding: string): string {
  const page = allPages().find(each => each.path === path);
  const blocks = page?.blocks.filter(block => block.language === language && block.text.includes(holding)) ?? [];
  const [block, ...more] = blocks;
  if (block === undefined || more.length > 0) throw new Error(`${path} has ${blocks.length} blocks with ${holding}`);
  return block.text;
}
