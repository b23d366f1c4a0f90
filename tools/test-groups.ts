// Which tests run where. The groups follow from the folders: nothing is listed by name that the tree does not already say.
import { readdirSync } from 'node:fs';

export interface TestGroups {
  /** The folders of test/ that mirror one of src/. */
  readonly unit: readonly string[];
  /** All others: real Envoys, the built product, documents, the oracle, and so on. */
  readonly outer: readonly string[];
  /** Tests that measure time or memory (`*.measured.test.ts`): they need the machine for themselves. */
  readonly measured: readonly string[];
}

/** Options of mocha. On two cores: the other files wait, for a period of the product or for a process that starts. */
export function atATime(jobs: number): readonly string[] {
  return ['--parallel', '--jobs', String(jobs)];
}

const root = new URL('../', import.meta.url);

/** Paths of test files, relative to the project. */
export function testGroups(): TestGroups {
  const files = readdirSync(new URL('test/', root), { recursive: true, encoding: 'utf8' })
    .filter(file => file.endsWith('.test.ts'))
    .map(file => `test/${file}`)
    .sort();
  const unitFolders = new Set([...foldersOf('src/'), 'support']);
  const groupOf = (file: string): keyof TestGroups => {
    const [, folder = ''] = file.split('/');
    if (file.endsWith('.measured.test.ts')) return 'measured';
    return folder.endsWith('.test.ts') || unitFolders.has(folder) ? 'unit' : 'outer';
  };
  const within = (group: keyof TestGroups): readonly string[] => files.filter(file => groupOf(file) === group);
  // In reverse: the folders whose tests wait (service, keys) start first, and those that only compute fill the gaps (authz).
  return { unit: within('unit').toReversed(), outer: within('outer'), measured: within('measured') };
}

/** The names of the folders in a folder of the project. */
export function foldersOf(path: string): readonly string[] {
  return readdirSync(new URL(path, root), { withFileTypes: true })
    .filter(entry => entry.isDirectory())
    .map(({ name }) => name);
}
