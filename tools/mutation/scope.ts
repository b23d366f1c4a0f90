// The mutated source files, and the tests that run against each of them.
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const project = fileURLToPath(new URL('../../', import.meta.url));

/** Files with the same tests, which are bundled and run together. Paths are relative to the project. */
export interface Group {
  readonly name: string;
  readonly sources: readonly string[];
  readonly tests: readonly string[];
}

// Tests that open ports and wait for clocks take seconds and cover most mutants: each such file is a group of its own.
const serving: readonly Group[] = [
  {
    name: 'grpc-server',
    sources: ['src/envoy/grpc-server.ts'],
    tests: ['test/envoy/grpc-server.test.ts', 'test/service/service.test.ts', 'test/service/service-lifecycle.test.ts'],
  },
  { name: 'socket-file', sources: ['src/envoy/socket-file.ts'], tests: ['test/envoy/socket-file.test.ts'] },
  {
    name: 'tls-credentials',
    sources: ['src/envoy/tls-credentials.ts'],
    tests: ['test/envoy/tls-credentials.test.ts', 'test/envoy/certificate-rotation.test.ts'],
  },
];

// Apart from paths, routes and queries, whose property tests take most of the time of `authz`.
const accounts: Group = {
  name: 'accounts',
  sources: ['account', 'authorize', 'hosts', 'issuer-accounts', 'permission', 'principal'].map(
    name => `src/authz/${name}.ts`,
  ),
  tests: ['account', 'authorize', 'authorize-roles', 'hosts', 'issuer-accounts', 'permission', 'principal'].map(
    name => `test/authz/${name}.test.ts`,
  ),
};

const reloads = ['service-revocation', 'service-reload', 'service-reload-results'];

export const groups: readonly Group[] = [
  {
    name: 'authz',
    sources: within('src/authz', '.ts').filter(file => !accounts.sources.includes(file)),
    tests: within('test/authz', '.test.ts'),
  },
  accounts,
  { name: 'token', sources: within('src/token', '.ts'), tests: within('test/token', '.test.ts') },
  {
    name: 'config',
    sources: [
      'src/config/claims-schema.ts',
      'src/config/cross-field-rules.ts',
      'src/config/issuer-schema.ts',
      'src/config/policy-schema.ts',
      'src/config/route-rules.ts',
      'src/config/warnings.ts',
    ],
    tests: ['schema', 'problem-texts', 'warnings'].map(name => `test/config/${name}.test.ts`),
  },
  {
    name: 'keys',
    sources: ['state', 'reducer', 'fetched', 'times'].map(part => `src/keys/key-set-${part}.ts`),
    tests: [
      ...['state', 'backoff', 'fields'].map(part => `test/keys/key-set-${part}.test.ts`),
      'test/assurance/key-states/random-steps.test.ts',
    ],
  },
  {
    name: 'jwks',
    sources: ['src/keys/jwks.ts', 'src/keys/key-material.ts'],
    tests: ['test/keys/jwks.test.ts', 'test/keys/skipped-keys.test.ts', 'test/keys/key-material.test.ts'],
  },
  { name: 'issuer-ring', sources: ['src/keys/issuer-ring.ts'], tests: ['test/keys/key-ring.test.ts'] },
  { name: 'age-clock', sources: ['src/keys/age-clock.ts'], tests: ['test/keys/age-clock.test.ts'] },
  {
    name: 'key-authorities',
    sources: ['src/keys/key-authorities.ts', 'src/keys/trusted-roots.ts'],
    tests: ['test/keys/key-authorities.test.ts', 'test/keys/trusted-roots.test.ts'],
  },
  { name: 'fetch-slots', sources: ['src/keys/fetch-slots.ts'], tests: ['test/keys/fetch-slots.test.ts'] },
  { name: 'key-seed', sources: ['src/keys/key-seed.ts'], tests: ['test/keys/key-seed.test.ts'] },
  {
    name: 'key-source',
    sources: ['src/keys/key-source.ts'],
    tests: ['key-source', 'discovery', 'keys-document'].map(name => `test/keys/${name}.test.ts`),
  },
  {
    name: 'key-ring',
    sources: ['key-ring', 'key-ring-observer', 'key-set-driver'].map(name => `src/keys/${name}.ts`),
    tests: ['key-ring', 'key-ring-files', 'key-set-driver', 'keys-document'].map(name => `test/keys/${name}.test.ts`),
  },
  { name: 'network-problem', sources: ['src/keys/network-problem.ts'], tests: ['test/keys/network-problem.test.ts'] },
  {
    name: 'text',
    sources: ['key-url', 'listen-address', 'printable', 'problem', 'url'].map(name => `src/text/${name}.ts`),
    tests: ['key-url', 'listen-address', 'printable', 'problem', 'url'].map(name => `test/text/${name}.test.ts`),
  },
  {
    name: 'revocation',
    sources: [...within('src/revocation', '.ts'), 'src/text/instant.ts'],
    tests: [...within('test/revocation', '.test.ts'), 'test/text/instant.test.ts'],
  },
  {
    name: 'files',
    sources: ['bounded-file', 'file-signature', 'file-slots', 'file-watch'].map(name => `src/files/${name}.ts`),
    tests: within('test/files', '.test.ts'),
  },
  { name: 'json', sources: within('src/json', '.ts'), tests: within('test/json', '.test.ts') },
  {
    name: 'envoy',
    sources: within('src/envoy', '.ts').filter(file => !serving.some(({ sources }) => sources.includes(file))),
    tests: [
      ...within('test/envoy', '.test.ts').filter(file => !serving.some(({ tests }) => tests.includes(file))),
      'test/check/check.test.ts',
    ],
  },
  {
    name: 'check',
    sources: ['src/check/check.ts', 'src/check/engine.ts'],
    tests: [
      'test/check/check.test.ts',
      'test/check/engine.test.ts',
      'test/token/provider-tokens.test.ts',
      'test/service/service-requests.test.ts',
      ...reloads.map(name => `test/serve/${name}.test.ts`),
    ],
  },
  {
    name: 'serve',
    sources: within('src/serve', '.ts'),
    // The rest of test/serve/ asks what check/ and token/ decide.
    tests: ['failed-start', 'service', 'service-lifecycle', ...reloads].map(name => `test/serve/${name}.test.ts`),
  },
  ...serving,
];

function within(folder: string, ending: string): string[] {
  const names = readdirSync(`${project}${folder}`).filter(name => name.endsWith(ending));
  return names.sort().map(name => `${folder}/${name}`);
}
