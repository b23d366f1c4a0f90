// Finds the tests of each security case: mocha lists all tests without running them, so that generated titles count.
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { compiledFile, isCompiled, mochaConfig, sourceFile } from '../../lab/compiled.ts';
import { idsIn } from './case-list.ts';

/** The ring of a test: in-memory values, sockets with the real serializers, or behind a real Envoy. */
export type Ring = 'unit' | 'wire' | 'Envoy';

export interface CaseTest {
  readonly ids: readonly string[];
  /** Relative to the project. */
  readonly file: string;
  readonly title: string;
  readonly ring: Ring;
}

const project = fileURLToPath(new URL('../../', import.meta.url));

interface ListedTest {
  readonly file: string;
  readonly title: string;
  readonly fullTitle: string;
}

/** Every test with an id in its title; the same title under several Envoys counts once. */
export async function caseTests(): Promise<readonly CaseTest[]> {
  const found = new Map<string, CaseTest>();
  for (const { file: listed, title, fullTitle } of await listedTests()) {
    const ids = idsIn(fullTitle);
    if (ids.length === 0) continue;
    const file = sourceFile(relative(project, listed));
    found.set(`${file} ${ids} ${title}`, { ids, file, title, ring: await ringOf(file) });
  }
  return [...found.values()];
}

async function listedTests(): Promise<readonly ListedTest[]> {
  const directory = await mkdtemp(join(tmpdir(), 'account-authz-cases-'));
  try {
    const output = join(directory, 'tests.json');
    const mocha = join(project, 'node_modules/mocha/bin/mocha.js');
    const config = isCompiled() ? ['--config', mochaConfig] : [];
    const options = [...config, '--dry-run', '--reporter', 'json', '--reporter-option', `output=${output}`];
    const tests = isCompiled() ? compiledFile('test/**/*.test.ts') : 'test/**/*.test.ts';
    // An enclosing mocha run sets environment variables that must not reach the child.
    await promisify(execFile)(process.execPath, [mocha, ...options, tests], {
      cwd: project,
      maxBuffer: 64 * 1024 * 1024,
    });
    return (JSON.parse(await readFile(output, 'utf8')) as { readonly tests: readonly ListedTest[] }).tests;
  } finally {
    await rm(directory, { recursive: true });
  }
}

const rings = new Map<string, Ring>();

async function ringOf(file: string): Promise<Ring> {
  const known = rings.get(file);
  if (known !== undefined) return known;
  const text = await readFile(join(project, file), 'utf8');
  const ring = ringOfText(text);
  rings.set(file, ring);
  return ring;
}

// Decided by the imports of a test file.
function ringOfText(text: string): Ring {
  if (/from '[^']*(?:support\/envoy|e2e\/lab|\.\/lab)\.ts'/.test(text)) return 'Envoy';
  const sockets =
    /from '(?:[^']*(?:support\/(?:service|service-process|test-issuer|raw-http2?)|explain-lab)\.ts|node:(?:http2?|https|net|tls|dgram))'/;
  return sockets.test(text) ? 'wire' : 'unit';
}
