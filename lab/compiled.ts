// Where tools/compile-tests.ts puts the tests and the programs that they start. A mocha that was started by hand runs the sources through tsx.
import { fileURLToPath } from 'node:url';

const project = fileURLToPath(new URL('../', import.meta.url));

/** Relative to the project. */
export const compiledFolder = '.compiled';

/** The configuration of mocha for the compiled tests. */
export const mochaConfig = `${compiledFolder}/mocharc.json`;

/** Added to the environment of a mocha that runs the compiled tests. */
export const compiledEnvironment = { COMPILED_TESTS: '1' } as const;

/** The programs of the project, apart from the product, that tests start. */
export const programs = [
  'demo/compose-client.ts',
  'demo/main.ts',
  'demo/serve.ts',
  'demo/try.ts',
  'tools/package.ts',
] as const;

export function isCompiled(): boolean {
  return process.env.COMPILED_TESTS === compiledEnvironment.COMPILED_TESTS;
}

export function compiledFile(source: string): string {
  return `${compiledFolder}/${source.replace(/\.ts$/, '.mjs')}`;
}

/** The source of a file of the compiled tests; any other path is returned as it is. */
export function sourceFile(path: string): string {
  const [, source] = new RegExp(`^${compiledFolder}/(.*)\\.mjs$`).exec(path) ?? [];
  return source === undefined ? path : `${source}.ts`;
}

export type Program = (typeof programs)[number];

/** The path of a program. */
export function programFile(program: Program): string {
  return project + (isCompiled() ? compiledFile(program) : program);
}

/** Arguments for Node that run a program. */
export function programArguments(program: Program): readonly string[] {
  return isCompiled() ? [programFile(program)] : ['--import', 'tsx', programFile(program)];
}
