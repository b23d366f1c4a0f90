// The code blocks of a document, so that a test runs what a reader copies.
import { readFile } from 'node:fs/promises';

/** The blocks of one language in a file of the project, in order. */
export async function readSnippets(path: string, language: string): Promise<readonly string[]> {
  const text = await readFile(new URL(`../../${path}`, import.meta.url), 'utf8');
  // A block inside a list is indented.
  const blocks = text.matchAll(new RegExp(`^( *)\`\`\`${language}\\n(.*?)^ *\`\`\`$`, 'gms'));
  return Array.from(blocks, ([, indent = '', code = '']) => code.replaceAll(new RegExp(`^${indent}`, 'gm'), ''));
}

/** The one block of a language that holds a text; throws where there is none or more than one. */
export async function readSnippet(path: string, language: string, holding: string): Promise<string> {
  const found = (await readSnippets(path, language)).filter(code => code.includes(holding));
  const [code, ...more] = found;
  if (code === undefined || more.length > 0) throw new Error(`${path} has ${found.length} blocks with ${holding}`);
  return code;
}
