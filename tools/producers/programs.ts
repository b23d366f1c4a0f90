// The programs that sign tokens, one per language, with the libraries of that language. Each is built into .cache/producers once.
import { type ExecFileOptions, execFile } from 'node:child_process';
import { cp, mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const cache = fileURLToPath(new URL('../../.cache/producers/', import.meta.url));
const sources = fileURLToPath(new URL('./', import.meta.url));

export interface Program {
  readonly language: string;
  /** Installs the libraries; rejects if the machine has no such compiler or runtime. */
  prepare(): Promise<unknown>;
  /** Signs what the job names. Standard output: a line of JSON per token. */
  run(job: string): Promise<string>;
}

const libraries = {
  npm: ['jose@6.2.18', 'jsonwebtoken@9.0.3', 'fast-jwt@6.3.6'],
  pip: ['pyjwt[crypto]==2.15.1', 'joserfc==1.8.0', 'python-jose[cryptography]==3.5.0'],
} as const;

async function run(command: string, args: readonly string[], options: ExecFileOptions = {}): Promise<string> {
  const { stdout } = await promisify(execFile)(command, args, { maxBuffer: 2 ** 26, ...options });
  return String(stdout);
}

/** A copy in the cache, where compilers may write. */
async function copied(language: string): Promise<string> {
  await mkdir(cache, { recursive: true });
  await cp(`${sources}${language}`, `${cache}${language}`, { recursive: true });
  return `${cache}${language}`;
}

export const programs: readonly Program[] = [
  {
    language: 'JavaScript',
    prepare: () =>
      run('npm', [
        'install',
        '--prefix',
        `${cache}npm`,
        '--no-save',
        '--no-package-lock',
        '--no-audit',
        '--no-fund',
        ...libraries.npm,
      ]),
    run: job => run(process.execPath, [`${sources}javascript.mjs`, job, `${cache}npm`]),
  },
  {
    language: 'Python',
    prepare: () =>
      run('python3', ['-m', 'pip', 'install', '-q', '--target', `${cache}pip`, '--upgrade', ...libraries.pip]),
    run: job => run('python3', [`${sources}python.py`, job], { env: { ...process.env, PYTHONPATH: `${cache}pip` } }),
  },
  {
    language: 'Go',
    async prepare() {
      const folder = await copied('go');
      await run('go', ['mod', 'tidy'], { cwd: folder });
      await run('go', ['build', '-o', 'producers', '.'], { cwd: folder });
    },
    run: job => run(`${cache}go/producers`, [job]),
  },
  {
    language: 'Java',
    async prepare() {
      const folder = await copied('java');
      const dependencies = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies';
      await run('mvn', ['-B', '-q', 'compile', dependencies, '-DoutputDirectory=target/libraries'], { cwd: folder });
    },
    run: job => run('java', ['-cp', `${cache}java/target/classes:${cache}java/target/libraries/*`, 'Producers', job]),
  },
  {
    language: 'Rust',
    async prepare() {
      const folder = await copied('rust');
      await run('cargo', ['build', '-q', '--release'], { cwd: folder });
    },
    run: job => run(`${cache}rust/target/release/producers`, [job]),
  },
];
