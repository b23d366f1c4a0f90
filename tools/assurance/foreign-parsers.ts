// Query parsers and routers of Python, Go and Java, each where the machine has the language. The packages are installed under .cache/parsers.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, stat } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

export interface ForeignParsers {
  readonly language: string;
  /** The accounts that each parser reads in each query or path, by parser; undefined where the machine does not have the language. */
  read(texts: readonly string[], kind: ForeignKind): Promise<Readings | undefined>;
}

export type Readings = ReadonlyMap<string, readonly (readonly string[])[]>;

export type ForeignKind =
  | { readonly kind: 'queries' }
  /** `templates`: the most specific first. A router reports `another route` where it serves one of `narrowed`. */
  | { readonly kind: 'paths'; readonly templates: readonly string[]; readonly narrowed: readonly string[] };

const here = fileURLToPath(new URL('foreign/', import.meta.url));
const cache = fileURLToPath(new URL('../../.cache/parsers/', import.meta.url));

export const foreignParsers: readonly ForeignParsers[] = [
  {
    language: 'Python',
    async read(texts, kind) {
      const python = await installPython();
      return python === undefined ? undefined : ask(texts, python, `${here}python/read.py`, ...argumentsOf(kind));
    },
  },
  {
    language: 'Go',
    async read(texts, kind) {
      if (!hasCommand('go', 'version')) return undefined;
      run('go', '-C', `${here}go`, 'build', '-o', `${cache}go-read`, '.');
      return ask(texts, `${cache}go-read`, ...argumentsOf(kind));
    },
  },
  {
    language: 'Java',
    async read(texts, kind) {
      const classPath = await installJava();
      return classPath === undefined
        ? undefined
        : ask(texts, 'java', '-cp', classPath, `${here}java/Read.java`, ...argumentsOf(kind));
    },
  },
];

/** Installs the Python packages; the path of the interpreter that has them, or undefined without Python. */
export async function installPython(): Promise<string | undefined> {
  if (!hasCommand('python3', '--version')) return undefined;
  const python = `${cache}venv/bin/python`;
  if (!(await exists(python))) run('python3', '-m', 'venv', `${cache}venv`);
  run(python, '-m', 'pip', 'install', '--quiet', '--requirement', `${here}python/requirements.txt`);
  return python;
}

/** Installs the Java packages; their class path, or undefined without Java and Maven. */
export async function installJava(): Promise<string | undefined> {
  if (!hasCommand('java', '-version') || !hasCommand('mvn', '--version')) return undefined;
  await mkdir(cache, { recursive: true });
  const classPath = `${cache}class-path.txt`;
  run('mvn', '-q', '-B', '-f', `${here}java/pom.xml`, 'dependency:build-classpath', `-Dmdep.outputFile=${classPath}`);
  return (await readFile(classPath, 'utf8')).trim();
}

function argumentsOf({ kind, ...layout }: ForeignKind): readonly string[] {
  return kind === 'queries' ? [kind] : [kind, JSON.stringify(layout)];
}

async function ask(texts: readonly string[], command: string, ...args: readonly string[]): Promise<Readings> {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  child.stdin.end(texts.map(text => `${JSON.stringify(text)}\n`).join(''));
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${command} ended with ${code}`);
  const readings = new Map<string, (readonly string[])[]>();
  for (const line of Buffer.concat(chunks).toString().split('\n')) {
    if (line === '') continue;
    for (const [parser, accounts] of Object.entries(JSON.parse(line) as Record<string, string[]>)) {
      const known = readings.get(parser);
      if (known === undefined) readings.set(parser, [accounts]);
      else known.push(accounts);
    }
  }
  return readings;
}

export function hasCommand(command: string, versionOption: string): boolean {
  return spawnSync(command, [versionOption], { stdio: 'ignore' }).status === 0;
}

function run(command: string, ...args: readonly string[]): void {
  const { status } = spawnSync(command, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}`);
}

async function exists(path: string): Promise<boolean> {
  await mkdir(cache, { recursive: true });
  return stat(path).then(
    () => true,
    () => false,
  );
}
