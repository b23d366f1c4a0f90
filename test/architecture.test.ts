// The architecture rules of src/: import direction, public APIs only, and what exactly one module may do.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

const source = fileURLToPath(new URL('../src/', import.meta.url));

/** What each part of src/ may import from the other parts. A folder name with a file means that file only. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  'main.ts': ['commands', 'operations/fault.ts', 'operations/log-destination.ts', 'version.ts', 'foreign-text.ts'],
  commands: [
    'service.ts',
    'revocations.ts',
    'foreign-text.ts',
    'version.ts',
    'address',
    'authz/decision.ts',
    'config',
    'explain',
    'policy-test',
    'instant.ts',
    'files',
    'operations',
    'keys/key-ring.ts',
    'envoy/proto-files.ts',
    'envoy/protocol.ts',
    'envoy-config',
    'envoy-lint',
  ],
  explain: [
    'check.ts',
    'engine.ts',
    'authz',
    'config/schema.ts',
    'envoy',
    'deferred.ts',
    'foreign-text.ts',
    'json',
    'keys/key-ring.ts',
    'keys/key-rings.ts',
    'keys/key-transport.ts',
    'operations',
    'token/compact.ts',
    'token/revocation.ts',
    'token/verifier.ts',
  ],
  'policy-test': [
    'authz/refusal.ts',
    'config',
    'explain/check-request.ts',
    'explain/current-keys.ts',
    'explain/recorded-check.ts',
    'files/bounded-file.ts',
    'foreign-text.ts',
    'instant.ts',
    'keys/key-ring.ts',
    'keys/key-rings.ts',
    'token/revocation.ts',
    'token/verifier.ts',
  ],
  'service.ts': [
    'check.ts',
    'deferred.ts',
    'engine.ts',
    'revocations.ts',
    'address',
    'config',
    'envoy',
    'files',
    'keys',
    'operations',
  ],
  'revocations.ts': ['config', 'files', 'operations', 'token/revocation.ts'],
  'check.ts': ['engine.ts', 'envoy', 'authz', 'operations'],
  'engine.ts': ['authz', 'token', 'keys/key-ring.ts', 'config/schema.ts'],
  envoy: ['address', 'authz', 'files'],
  token: ['authz', 'json'],
  keys: ['address', 'authz/checks.ts', 'files', 'json', 'deferred.ts', 'foreign-text.ts'],
  config: [
    'address',
    'authz/principal.ts',
    'authz/route-template.ts',
    'files',
    'json',
    'keys/jwks.ts',
    'token/claims.ts',
    'token/revocation.ts',
    'foreign-text.ts',
    'instant.ts',
  ],
  'envoy-config': ['address', 'authz/route-template.ts', 'config/schema.ts'],
  'envoy-lint': [
    'address',
    'authz/route-template.ts',
    'config/schema.ts',
    'envoy/identity-headers.ts',
    'envoy-config',
    'foreign-text.ts',
    'json',
  ],
  operations: ['authz', 'envoy/protocol.ts', 'keys/key-ring.ts', 'foreign-text.ts'],
  authz: [],
  files: [],
  address: [],
  json: [],
  'deferred.ts': [],
  'instant.ts': [],
  'foreign-text.ts': [],
  'version.ts': [],
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
  const [own, other] = [partOf(from), partOf(to)];
  return own === other || (mayImport[own] ?? []).some(allowed => allowed === other || allowed === to);
}

describe('src/', () => {
  const imports = sourceFiles().flatMap(importsOf);

  it('imports only in the allowed directions', () => {
    expect(imports.filter(each => !isAllowed(each))).to.deep.equal([]);
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

  it('escapes foreign text only in foreign-text.ts', () => {
    const escapes = /\\p\{C\}|\\x20-\\x7e|padStart\(4, '0'\)\}`\)/;
    const found = sourceFiles().filter(file => escapes.test(readFileSync(join(source, file), 'utf8')));
    expect(found).to.deep.equal(['foreign-text.ts']);
  });

  it('uses only the public APIs of packages and of Node', () => {
    // Matches deep imports into a package, private symbols, V8 flags and patched prototypes.
    const isPrivate =
      /from '(?:@[\w-]+\/)?[\w-]+\/(?:build|lib|src|dist|internal)\/|getOwnPropertySymbols|setFlagsFromString|process\.binding|\.prototype\.\w+ = |\bhttp2Servers\b/;
    const found = sourceFiles().filter(file => isPrivate.test(readFileSync(join(source, file), 'utf8')));
    expect(found).to.deep.equal([]);
  });

  it('has a first comment in each file that names its job', () => {
    const silent = sourceFiles().filter(file => !/^(?:#!.*\n)?\/\/ \S/.test(readFileSync(join(source, file), 'utf8')));
    expect(silent).to.deep.equal([]);
  });
});
