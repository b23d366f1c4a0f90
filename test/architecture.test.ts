// The architecture rules of src/: import direction, public APIs only, and what exactly one module may do.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

const source = fileURLToPath(new URL('../src/', import.meta.url));

/** The floors of src/, from the lowest: a part imports from itself and from the floors below its own. */
const floors: readonly (readonly string[])[] = [
  ['authz', 'text', 'package.ts'],
  ['files', 'json', 'headers'],
  ['http', 'envoy'],
  ['revocation', 'keys'],
  ['token'],
  ['config'],
  ['check'],
  ['service', 'toolkit'],
  ['commands'],
  ['main.ts'],
];

/** The same for the rooms of src/toolkit/: what several of them share is below. */
const toolkitFloors: readonly (readonly string[])[] = [
  ['envoy-settings', 'offline'],
  ['render', 'lint', 'explain', 'verify', 'policy-test', 'check-config', 'openapi', 'compare'],
  ['init'],
];

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

/** The imports within `names`, as arrows, that do not lead to a lower floor. */
function arrowsUp(
  imports: readonly Import[],
  named: readonly (readonly string[])[],
  nameOf: (file: string) => string,
): readonly string[] {
  const floorOf = (file: string): number => named.findIndex(names => names.includes(nameOf(file)));
  return imports
    .filter(({ from, to }) => to.endsWith('.ts') && nameOf(from) !== nameOf(to) && floorOf(from) <= floorOf(to))
    .map(({ from, to }) => `${from} imports ${to}`);
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

  it('imports downwards only, from floor to floor', () => {
    expect(arrowsUp(imports, floors, partOf)).to.deep.equal([]);
  });

  it('imports downwards only in toolkit/, from room to room', () => {
    const inside = imports.filter(({ from, to }) => [from, to].every(file => file.startsWith('toolkit/')));
    expect(arrowsUp(inside, toolkitFloors, file => file.split('/')[1] ?? '')).to.deep.equal([]);
  });

  it('imports service/ and toolkit/ from commands/ alone', () => {
    const wings = imports.filter(({ from, to }) => {
      const wing = partOf(to);
      return (wing === 'service' || wing === 'toolkit') && partOf(from) !== wing && partOf(from) !== 'commands';
    });
    expect(wings).to.deep.equal([]);
  });

  it('has no import cycle between files', () => {
    const graph = new Map(sourceFiles().map(file => [file, importsOf(file).map(({ to }) => to)]));
    const inCycle = sourceFiles().filter(file => reachableFrom(file, graph).has(file));
    expect(inCycle).to.deep.equal([]);
  });

  it('has a floor for each part and each room', () => {
    expect(floors.flat()).to.have.members([...new Set(sourceFiles().map(partOf))]);
    const rooms = sourceFiles().flatMap(file => /^toolkit\/(.+?)\//.exec(file)?.[1] ?? []);
    expect(toolkitFloors.flat()).to.have.members([...new Set(rooms)]);
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
