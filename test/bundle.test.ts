// What the service loads of dist/, and that nothing is missed of what was left out of it.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { build } from 'esbuild';
import { leaveOut } from '../packaging/left-out.ts';
import { undiciClient } from '../packaging/undici-client.ts';
import type * as KeyTransportModule from '../src/keys/key-transport.ts';
import { startConnectProxy } from './keys/connect-proxy.ts';
import { testCertificate } from './keys/test-certificate.ts';
import { secrets } from './support/secrets.ts';
import { type IssuerFault, startTestIssuer } from './support/test-issuer.ts';

const project = fileURLToPath(new URL('../', import.meta.url));

describe('dist/', () => {
  // Each stands in the text of what it is a sign of, as the last test of this part shows.
  const signs = {
    zod: '$ZodError',
    yaml: 'parseDocument',
    fetch: 'CacheStorage',
    'Node’s own undici': 'globalThis.fetch',
    'the descriptions of messages': 'ReflectionObject',
    'the client of grpc-js': 'pick_first',
    'HTTP/2 as a client': 'http2.connect',
    'threads for the log': 'thread-stream',
    'clusters of Prometheus': 'prom:metrics:cluster',
    'meters of OpenTelemetry': 'NoopMeter',
  };
  const textOf = (files: readonly string[]): string =>
    files.map(file => readFileSync(join(project, 'dist', file), 'utf8')).join('\n');
  const built = readdirSync(join(project, 'dist')).filter(file => file.endsWith('.js'));

  /** The file, and all that is loaded with it. */
  function withImports(file: string, seen = new Set<string>()): ReadonlySet<string> {
    if (seen.has(file)) return seen;
    seen.add(file);
    for (const [, imported = ''] of textOf([file]).matchAll(/(?:from|^import|;import)"\.\/([\w.-]+\.js)"/gm))
      withImports(imported, seen);
    return seen;
  }

  const service = built.filter(file => file.startsWith('serve-')).flatMap(file => [...withImports(file)]);

  for (const [name, sign] of Object.entries(signs)) {
    it(`the service loads nothing of ${name}`, () => {
      expect(service).to.have.length.greaterThan(3);
      expect(textOf(service)).to.not.contain(sign);
    });
  }

  it('what judges configurations has the first two, and undici the third', () => {
    const judge = textOf([...withImports('config-thread-entry.js')]);
    expect(judge).to.contain(signs.zod).and.contain(signs.yaml);
    expect(readFileSync(join(project, 'node_modules/undici/index.js'), 'utf8')).to.contain(signs.fetch);
  });

  it('the command that is a client has the client of grpc-js', () => {
    const { stdout, stderr, status } = spawnSync(
      process.execPath,
      [join(project, 'dist/main.js'), 'health', '--address', '127.0.0.1:1'],
      { encoding: 'utf8' },
    );
    secrets.show('command', stdout);
    secrets.show('standard error', stderr);
    expect(`${stdout}${stderr}`).to.contain('not reached: ').and.contain('ECONNREFUSED');
    expect(status).to.equal(1);
  });

  it('the packages have the others', () => {
    const files = {
      'the descriptions of messages': 'protobufjs/src/object.js',
      'the client of grpc-js': '@grpc/grpc-js/build/src/load-balancer-pick-first.js',
      'HTTP/2 as a client': 'undici/lib/dispatcher/client-h2.js',
      'threads for the log': 'pino/lib/transport.js',
      'clusters of Prometheus': '@prometheus-io/client/lib/cluster.js',
      'meters of OpenTelemetry': '@opentelemetry/api/build/esm/metrics/NoopMeter.js',
    } as const;
    for (const name of Object.keys(files) as (keyof typeof files)[])
      expect(readFileSync(join(project, 'node_modules', files[name]), 'utf8'), name).to.contain(signs[name]);
  });
});

describe('the client that the bundle has of undici', () => {
  const host = 'auth.account-authz.test';
  const authority = testCertificate({ name: 'test authority', isAuthority: true, addresses: [] });
  let directory: string;
  let transport: typeof KeyTransportModule;

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'account-authz-bundle-'));
    const outfile = join(directory, 'key-transport.mjs');
    await build({
      absWorkingDir: project,
      entryPoints: ['src/keys/key-transport.ts'],
      ...{ bundle: true, platform: 'node', format: 'esm', outfile },
      banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
      plugins: [undiciClient, leaveOut],
    });
    await writeFile(join(directory, 'authority.pem'), authority.cert);
    transport = await import(pathToFileURL(outfile).href);
  });
  after(() => rm(directory, { recursive: true }));

  const get = (url: string, httpsProxy?: string, timeoutMs = 2000) =>
    transport
      .createKeyTransport({ caFile: join(directory, 'authority.pem'), proxy: { httpsProxy }, timeoutMs })
      .use(new AbortController().signal, fetch => fetch(url));

  it('reads a document through a proxy, over TLS', async () => {
    const issuer = await startTestIssuer({ tls: testCertificate({ authority, dnsNames: [host] }), host });
    const proxy = await startConnectProxy(issuer.port);
    try {
      const read = await get(issuer.jwksUrl, proxy.url);
      expect(read).to.have.property('kind', 'body');
      expect(proxy.asked).to.deep.equal([`${host}:${issuer.port}`]);
    } finally {
      await Promise.all([proxy.stop(), issuer.stop()]);
    }
  });

  const faults: readonly (readonly [fault: IssuerFault, problem: string])[] = [
    [{ kind: 'hang' }, 'timed out'],
    [{ kind: 'hangAfterHeaders' }, 'timed out'],
    [{ kind: 'reset' }, 'connection closed'],
    [{ kind: 'redirect', location: 'http://127.0.0.1/other' }, 'redirect refused'],
    [{ kind: 'gzipBomb' }, 'body too large'],
    [
      { kind: 'respond', headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' } },
      'content encoding',
    ],
    [{ kind: 'respond', headers: { 'x-long': 'x'.repeat(100_000) } }, 'headers too large'],
  ];
  for (const [fault, problem] of faults) {
    it(`tells a fault by its name: ${fault.kind}, ${problem}`, async () => {
      const issuer = await startTestIssuer();
      issuer.fault(fault);
      try {
        expect(await get(issuer.jwksUrl, undefined, 300)).to.deep.equal({ kind: 'problem', problem });
      } finally {
        await issuer.stop();
      }
    });
  }
});
