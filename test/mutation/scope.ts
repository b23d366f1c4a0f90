// Which source files are mutated, and which tests are asked about each of them.
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const project = fileURLToPath(new URL('../../', import.meta.url));

/** Files that are asked by the same tests: they are built and run together. Paths are relative to the project. */
export interface Group {
  readonly name: string;
  readonly sources: readonly string[];
  readonly tests: readonly string[];
}

// What opens ports and reads files is asked through a whole service, the rest of envoy/ by tests of its own.
const serving = ['grpc-server.ts', 'socket-file.ts', 'tls-credentials.ts'].map(name => `src/envoy/${name}`);

export const groups: readonly Group[] = [
  { name: 'authz', sources: within('src/authz', '.ts'), tests: within('test/authz', '.test.ts') },
  { name: 'token', sources: within('src/token', '.ts'), tests: within('test/token', '.test.ts') },
  {
    name: 'keys',
    sources: ['src/keys/key-set-state.ts'],
    tests: ['test/keys/key-set-state.test.ts'],
  },
  {
    name: 'envoy',
    sources: within('src/envoy', '.ts').filter(file => !serving.includes(file)),
    tests: [...within('test/envoy', '.test.ts').filter(file => !isServingTest(file)), 'test/check.test.ts'],
  },
  {
    name: 'serving',
    sources: serving,
    tests: [...within('test/envoy', '.test.ts').filter(isServingTest), 'test/service.test.ts'],
  },
];

function isServingTest(file: string): boolean {
  return serving.some(source => file === source.replace(/^src\/(.*)\.ts$/, 'test/$1.test.ts'));
}

function within(folder: string, ending: string): string[] {
  const names = readdirSync(`${project}${folder}`).filter(name => name.endsWith(ending));
  return names.sort().map(name => `${folder}/${name}`);
}
