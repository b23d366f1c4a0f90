// The architecture rules of src/: import direction, public APIs only, and what exactly one module may do.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

const source = fileURLToPath(new URL('../src/', import.meta.url));

/** What each part of src/ may import from the other parts. A folder name with a file means that file only. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  'main.ts': ['commands', 'service', 'text', 'package.ts'],
  commands: [
    'service',
    'offline',
    'envoy-config',
    'revocation',
    'config',
    'keys',
    'authz',
    'files',
    'json',
    'text',
    'http',
    'package.ts',
  ],
  service: ['check', 'revocation', 'envoy', 'config', 'keys', 'authz', 'files', 'http', 'text', 'package.ts'],
  offline: [
    'check',
    'envoy-config/account-places.ts',
    'revocation',
    'envoy',
    'config',
    'keys',
    'token',
    'authz',
    'files',
    'http',
    'json',
    'text',
  ],
  'envoy-config': ['config', 'authz', 'files', 'json', 'text', 'package.ts'],
  check: ['envoy-config/headers.ts', 'revocation', 'envoy', 'config', 'keys', 'token', 'authz', 'text'],
  envoy: ['envoy-config/headers.ts', 'authz', 'files', 'text', 'package.ts'],
  config: ['envoy-config/headers.ts', 'revocation', 'keys', 'token', 'authz', 'files', 'json', 'text'],
  revocation: ['authz', 'files', 'json', 'text'],
  keys: ['authz', 'files', 'http', 'json', 'text'],
  token: ['keys', 'authz', 'json', 'text'],
  authz: [],
  files: ['text'],
  http: ['text'],
  json: ['text'],
  text: [],
  'package.ts': [],
};

interface Import {
  readonly from: string;
  readonly to: string;
}

function sourceFiles(): string[] {
  return readdirSync(source, { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.ts'));
}

function importsOf(file: string): Import[] {
  const text = readFileSync(join(source, file), 'utf8');
  const specifiers = Array.from(text.matchAll(/(?:from|import)\s*\(?\s*'([^']+)'/g), match => match[1] ?? '');
  return specifiers.map(to => ({
    from: file,
    to: to.startsWith('.') ? relative(source, join(source, dirname(file), to)) : to,
  }));
}

function partOf(file: string): string {
  return file.split('/')[0] ?? file;
}

function isAllowed({ from, to }: Import): boolean {
  if (!to.endsWith('.ts')) return true;
  const own = partOf(from);
  return own === partOf(to) || (mayImport[own] ?? []).some(allowed => isUnder(to, allowed));
}

function isUnder(file: string, part: string): boolean {
  return file === part || partOf(file) === part;
}

/** All files that a file imports, directly or by others. */
function reachableFrom(file: string, graph: ReadonlyMap<string, readonly string[]>): ReadonlySet<string> {
  const found = new Set<string>();
  const waiting = [file];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for (const to of graph.get(next) ?? []) {
      if (found.has(to)) continue;
      found.add(to);
      waiting.push(to);
    }
  }
  return found;
}

describe('src/', () => {
  const imports = sourceFiles().flatMap(importsOf);

  it('imports only in the allowed directions', () => {
    expect(imports.filter(each => !isAllowed(each))).to.deep.equal([]);
  });

  it('imports all that the rules allow', () => {
    const unused = Object.entries(mayImport).flatMap(([part, allowed]) =>
      allowed.flatMap(to =>
        imports.some(each => partOf(each.from) === part && isUnder(each.to, to)) ? [] : [{ part, to }],
      ),
    );
    expect(unused).to.deep.equal([]);
  });

  it('has no import cycle between files', () => {
    const graph = new Map(sourceFiles().map(file => [file, importsOf(file).map(({ to }) => to)]));
    const inCycle = sourceFiles().filter(file => reachableFrom(file, graph).has(file));
    expect(inCycle).to.deep.equal([]);
  });

  it('has an import rule for each part', () => {
    expect(Object.keys(mayImport)).to.include.members([...new Set(sourceFiles().map(partOf))]);
  });

  it('imports nothing into authz/ from other parts or packages', () => {
    const outside = imports.filter(({ from, to }) => partOf(from) === 'authz' && partOf(to) !== 'authz');
    expect(outside).to.deep.equal([]);
  });

  it('reads the environment and ends the process only in main.ts', () => {
    const found = sourceFiles().filter(file => /process\.(env|exit)/.test(readFileSync(join(source, file), 'utf8')));
    expect(found).to.deep.equal(['main.ts']);
  });

  it('L-005 uses no heap snapshot, report, console or inspect, which could print a token', () => {
    const dump = /\binspect\b|heapSnapshot|heapsnapshot|process\.report|console\.|v8\.write/;
    const found = sourceFiles().filter(file => dump.test(readFileSync(join(source, file), 'utf8')));
    expect(found).to.deep.equal([]);
  });

  it('builds CheckResponse messages only in envoy/response.ts', () => {
    const found = sourceFiles().filter(file =>
      /(?:denied|ok)_response: ?\{/.test(readFileSync(join(source, file), 'utf8')),
    );
    expect(found).to.deep.equal(['envoy/response.ts']);
  });

  it('escapes foreign text only in text/printable.ts', () => {
    const escapes = /\\p\{C\}|\\x20-\\x7e|padStart\(4, '0'\)\}`\)/;
    const found = sourceFiles().filter(file => escapes.test(readFileSync(join(source, file), 'utf8')));
    expect(found).to.deep.equal(['text/printable.ts']);
  });

  it('uses only the public APIs of packages and of Node', () => {
    // Matches deep imports into a package, private symbols, V8 flags and patched prototypes.
    const isPrivate =
      /from '(?:@[\w-]+\/)?[\w-]+\/(?:build|lib|src|dist|internal)\/|getOwnPropertySymbols|setFlagsFromString|process\.binding|\.prototype\.\w+ = |\bhttp2Servers\b/;
    const found = sourceFiles().filter(file => isPrivate.test(readFileSync(join(source, file), 'utf8')));
    expect(found).to.deep.equal([]);
  });

  it('takes the values of node:http from node-http.ts, or each instance would load undici', () => {
    const found = sourceFiles().filter(file =>
      /^import (?!type ).* from 'node:http';$/m.test(readFileSync(join(source, file), 'utf8')),
    );
    expect(found).to.deep.equal([]);
  });

  it('has a first comment in each file that names its job', () => {
    const silent = sourceFiles().filter(file => !/^(?:#!.*\n)?\/\/ \S/.test(readFileSync(join(source, file), 'utf8')));
    expect(silent).to.deep.equal([]);
  });
});

describe('test/', () => {
  it('has a folder for each folder of src/', () => {
    const foldersOf = (folder: URL): string[] =>
      readdirSync(folder, { withFileTypes: true }).flatMap(entry => (entry.isDirectory() ? [entry.name] : []));
    const tested = foldersOf(new URL('./', import.meta.url));
    expect(foldersOf(new URL('../src/', import.meta.url)).filter(name => !tested.includes(name))).to.deep.equal([]);
  });
});

/** What each folder beside src/ may import, apart from packages. What several need is in lab/. */
const mayImportBeside: Readonly<Record<string, readonly string[]>> = {
  lab: ['src'],
  demo: ['src', 'lab'],
  tools: ['src', 'lab', 'bench'],
  bench: ['src', 'lab'],
  test: ['src', 'lab', 'demo'],
};
/** The tests of tools themselves. */
const testsOfTools = /^test\/(?:tools\/|docs\/derived-files\.test\.ts$)/;

describe('the folders beside src/', () => {
  it('import only in the allowed directions', () => {
    const project = fileURLToPath(new URL('../', import.meta.url));
    const found = Object.entries(mayImportBeside).flatMap(([folder, allowed]) =>
      readdirSync(join(project, folder), { recursive: true, encoding: 'utf8' })
        .filter(name => name.endsWith('.ts'))
        .map(name => join(folder, name))
        .flatMap(file => {
          const text = readFileSync(join(project, file), 'utf8');
          const paths = Array.from(text.matchAll(/(?:from|import) '(\.[^']+)'/g), ([, to = '']) =>
            join(dirname(file), to),
          );
          const more = testsOfTools.test(file) ? ['tools'] : [];
          const foreign = paths.filter(path => ![folder, ...allowed, ...more].includes(partOf(path)));
          return foreign.map(path => `${file} imports ${path}`);
        }),
    );
    expect(found).to.deep.equal([]);
  });
});
