// Reads a page of docs/providers and the tokens that were captured from its provider, without their signatures.
import { readFileSync } from 'node:fs';
import { allPages, type Block } from './document.ts';

export interface ProviderPage {
  readonly path: string;
  /** Headings that have commands, in order. */
  readonly sections: readonly string[];
  /** The blocks of a language under a heading. */
  blocks(heading: string, language: string): readonly string[];
}

export interface DecodedToken {
  readonly header: Readonly<Record<string, unknown>>;
  readonly claims: Readonly<Record<string, unknown>>;
}

export interface ProviderFixture {
  /** The token of a user, from the authorization code grant. */
  readonly user: DecodedToken;
  /** The token of a service, from the client credentials grant. */
  readonly service: DecodedToken;
}

/** Headings that the pages have in common. */
export const headings = {
  publish: 'Publish the new key',
  sign: 'Sign with the new key',
  remove: 'Remove the old key',
  replace: 'Replace a stolen key at once',
  configuration: 'The configuration of account-authz',
} as const;

export function fixtureFile(name: string): URL {
  return new URL(`../test/fixtures/tokens/${name}.json`, import.meta.url);
}

export function readFixture(name: string): ProviderFixture {
  return JSON.parse(readFileSync(fixtureFile(name), 'utf8'));
}

export function providerPage(name: string): ProviderPage {
  const path = `docs/providers/${name}.md`;
  const page = allPages().find(each => each.path === path);
  if (page === undefined) throw new Error(`${path} is missing`);
  const placed = placeBlocks(page.text, page.blocks);
  return {
    path,
    sections: [...new Set(placed.filter(({ language }) => language === 'bash').map(({ heading }) => heading))],
    blocks(heading, language) {
      const found = placed.filter(block => block.heading === heading && block.language === language);
      if (found.length === 0) throw new Error(`${path} has no block of ${language} under ${heading}`);
      return found.map(({ text }) => text);
    },
  };
}

function placeBlocks(text: string, blocks: readonly Block[]): readonly (Block & { readonly heading: string })[] {
  const inBlock = (line: number): boolean =>
    blocks.some(block => line > block.line && line <= block.line + block.text.split('\n').length - 1);
  const found = text
    .split('\n')
    .map((content, i) => ({ content, line: i + 1 }))
    .filter(({ content, line }) => /^#+ /.test(content) && !inBlock(line));
  return blocks.map(block => {
    const above = found.findLast(({ line }) => line < block.line);
    return { ...block, heading: above?.content.replace(/^#+ /, '') ?? '' };
  });
}
