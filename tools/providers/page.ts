// Reads a page of docs/providers for `npm run providers`, which runs its commands unchanged and uses its configuration, its decoded token
// and its JSON documents.
import { execFile } from 'node:child_process';
import { appendFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { allPages, type Block } from '../../lab/document.ts';

const run = promisify(execFile);
// Each command of kcadm starts a Java VM: a section takes minutes on a busy machine.
const commandLimitMs = 15 * 60_000;

export interface ProviderPage {
  readonly path: string;
  /** Headings that have commands, in order. */
  readonly sections: readonly string[];
  /** The blocks of a language under a heading. */
  blocks(heading: string, language: string): readonly string[];
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
  const headings = text
    .split('\n')
    .map((content, i) => ({ content, line: i + 1 }))
    .filter(({ content, line }) => /^#+ /.test(content) && !inBlock(line));
  return blocks.map(block => {
    const above = headings.findLast(({ line }) => line < block.line);
    return { ...block, heading: above?.content.replace(/^#+ /, '') ?? '' };
  });
}

export interface PageShell {
  /** Runs the commands under a heading. Their variables and functions stay for the next ones. */
  run(heading: string): Promise<void>;
  /** Runs commands that are not on the page, with the variables and functions of the page. */
  runScript(name: string, commands: string): Promise<void>;
  stop(): Promise<void>;
}

/** `addresses` maps the addresses on the page to those of the run. */
export async function startPageShell(
  page: ProviderPage,
  addresses: ReadonlyMap<string, string>,
  env: Readonly<Record<string, string>>,
): Promise<PageShell> {
  const directory = await mkdtemp(join(tmpdir(), 'account-authz-providers-'));
  const state = join(directory, 'state.sh');
  await appendFile(state, '');
  const runScript = async (name: string, commands: string): Promise<void> => {
    const script = `set -aeuo pipefail\n. ${state}\n${commands}\n{ export -p; declare -f; } > ${state}\n`;
    const options = { cwd: directory, env: { ...process.env, ...env }, timeout: commandLimitMs };
    await run('bash', ['-c', script], options).catch((cause: unknown) => {
      const { stdout = '', stderr = '' } = cause as { stdout?: string; stderr?: string };
      throw new Error(`${name} fails:\n${stdout}${stderr}`);
    });
  };
  return {
    runScript,
    run: heading =>
      runScript(`${page.path}, "${heading}"`, replaceAll(page.blocks(heading, 'bash').join('\n'), addresses)),
    stop: () => rm(directory, { recursive: true, force: true }),
  };
}

export function replaceAll(text: string, replacements: ReadonlyMap<string, string>): string {
  return [...replacements].reduce((result, [from, to]) => result.replaceAll(from, to), text);
}
