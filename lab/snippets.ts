// Finds one code block of a document, so that a test runs what a reader copies.
import { allPages } from './document.ts';

/** The block of this language that contains the text; throws unless there is exactly one. */
export function readSnippet(path: string, language: string, holding: string): string {
  const page = allPages().find(each => each.path === path);
  const blocks = page?.blocks.filter(block => block.language === language && block.text.includes(holding)) ?? [];
  const [block, ...more] = blocks;
  if (block === undefined || more.length > 0) throw new Error(`${path} has ${blocks.length} blocks with ${holding}`);
  return block.text;
}
