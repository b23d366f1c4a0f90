// `npm test`: all tests, several files at a time and `npm run check` beside them, then alone those that measure. `npm run test:unit` (argument `unit`): the folders that
// mirror src/. Both compile the tests first. Prints a line a test file, all failures at the end, and as its last line `N passed, N failed`.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { compiledEnvironment, compiledFile, mochaConfig } from '../lab/compiled.ts';
import { envoyBinary, envoyVersions } from '../lab/envoy.ts';
import { programPath } from '../lab/programs.ts';
import { compileTests } from './compile-tests.ts';
import { atATime, testGroups } from './test-groups.ts';

interface Result {
  readonly passed: number;
  readonly failed: number;
  /** Everything that mocha prints from `N failing` on. */
  readonly failures: readonly string[];
}

const root = fileURLToPath(new URL('../', import.meta.url));
const { unit, outer, measured } = testGroups();
const exitLimitMs = 10_000;
const started = performance.now();
const isUnit = process.argv[2] === 'unit';
const installing = isUnit ? undefined : install();
const checking = isUnit ? [] : [check()];
await compileTests();
const results = [
  await mocha(isUnit ? unit : [...outer, ...unit], atATime(isUnit ? 5 : 3)),
  ...(await Promise.all(checking)),
];
if (!isUnit) results.push(await mocha(measured));
await installing;

for (const line of results.flatMap(({ failures }) => failures)) console.log(line);
const [passed, failed] = [sum(({ passed }) => passed), sum(({ failed }) => failed)];
console.log(`${Math.round((performance.now() - started) / 1000)} s`);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

function sum(count: (result: Result) => number): number {
  return results.map(count).reduce((a, b) => a + b, 0);
}

/** Installs while the first tests run what several files need at the same time. A failure is that of the tests that use it. */
async function install(): Promise<void> {
  try {
    await programPath('kustomize');
    await programPath('promtool');
    for (const version of envoyVersions) await envoyBinary(version);
  } catch {}
}

/** Types, lint and regular expressions; one failure with all that was printed, if any is found. */
async function check(): Promise<Result> {
  const child = spawn('npm', ['run', '--silent', 'check'], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  if (code === 0) return { passed: 0, failed: 0, failures: [] };
  return { passed: 0, failed: 1, failures: ['  1 failing: npm run check', ...`${stdout}${stderr}`.split('\n')] };
}

/** Runs test files. A mocha that ends without its closing line counts as one failure. */
async function mocha(files: readonly string[], options: readonly string[] = []): Promise<Result> {
  const args = ['node_modules/mocha/bin/mocha.js', '--config', mochaConfig, ...options, ...files.map(compiledFile)];
  const env = { ...process.env, ...compiledEnvironment };
  const child = spawn(process.execPath, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const failures: string[] = [];
  let closing: { readonly passed: number; readonly failed: number } | undefined;
  for await (const line of createInterface({ input: child.stdout })) {
    const [, passed, failed] = /^(\d+) passed, (\d+) failed$/.exec(line) ?? [];
    if (passed !== undefined) {
      closing = { passed: Number(passed), failed: Number(failed) };
      break;
    }
    if (failures.length > 0 || /^ {2}\d+ failing$/.test(line)) failures.push(line);
    else console.log(line);
  }
  // A thread that blocks in a system call, such as a pipe that a failed test left, keeps a process from its end.
  child.stdout.destroy();
  const overdue = setTimeout(() => child.kill('SIGKILL'), exitLimitMs);
  const [code, signal] = await exited;
  clearTimeout(overdue);
  if (closing !== undefined && (code === 0 || closing.failed > 0)) return { ...closing, failures };
  return { passed: closing?.passed ?? 0, failed: 1, failures: [...failures, `mocha ended with ${signal ?? code}`] };
}
