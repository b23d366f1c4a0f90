// The processor time that `check-config --envoy` takes for 16 MiB of each shape: npm run bench:lint. Fails above 10 seconds.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { envoyBootstrap } from '../lab/envoy-bootstrap.ts';

const limitSeconds = 10;
const size = 16 * 1024 * 1024 - 64 * 1024;
const perRoute = { '@type': 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute' };
const off = { typed_per_filter_config: { 'envoy.filters.http.ext_authz': { ...perRoute, disabled: true } } };
const toApi = { route: { cluster: 'upstream' } };
const word = (i: number): string => i.toString(36).padStart(5, 'a');
const alternatives = (i: number, count: number, start = '', end = ''): string =>
  Array.from({ length: count }, (_, k) => start + word(i * count + k) + end).join('|');
const publicPaths = (i: number): string => alternatives(i, 80, '/p', '(/[A-Za-z0-9._~:@-]+)*');

const removal = (regex: string): unknown => ({ remove_on_match: { key_matcher: { safe_regex: { regex } } } });
const tcpProxy = 'type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy';
const forwarding = { filters: [{ typed_config: { '@type': tcpProxy, cluster: 'upstream' } }] };

type Shape = readonly [
  place: 'routes' | 'virtual_hosts' | 'mutations' | 'patterns' | 'listeners',
  item: (i: number) => unknown,
];
const shapes: Readonly<Record<string, Shape>> = {
  'paths, each its own': ['routes', i => ({ match: { path: `/p${word(i)}` }, ...toApi })],
  'expressions of paths': ['routes', i => ({ match: { safe_regex: { regex: `/p${word(i)}/[0-9]+` } }, ...toApi })],
  'alternations of paths': ['routes', i => ({ match: { safe_regex: { regex: publicPaths(i) } }, ...toApi })],
  'virtual hosts': [
    'virtual_hosts',
    i => ({ name: word(i), domains: [word(i)], routes: [{ match: { prefix: '/' }, ...toApi }] }),
  ],
  'removals by expression': ['mutations', i => removal(`x[^a-z0-9]${word(i)}`)],
  'removals by nested expressions that match nothing': ['mutations', i => removal(`(-(${word(i)}|[a-z]+[0-9]*))+q`)],
  'removals by what is no expression': ['mutations', i => removal(`.(${word(i)}`)],
  'removals by alternations': ['mutations', i => removal(`x-(${alternatives(i, 300)})`)],
  'removals by thousands of optional letters': ['mutations', i => removal(`${word(i)}${'a?'.repeat(16_000)}`)],
  'removals by alternations that begin alike': ['mutations', i => removal(alternatives(i, 30, '.*'))],
  'shown headers by expression': ['patterns', i => ({ safe_regex: { regex: `x[^a-z0-9]${word(i)}` } })],
  'a finding for each route': ['routes', i => ({ match: { path: `/p${word(i)}` }, ...toApi, ...off })],
  'something not judged in each of 2 million routes': ['routes', () => ({ a: 1 })],
  'listeners that forward bytes to the service': ['listeners', () => ({ filter_chains: [forwarding] })],
};

const folder = mkdtempSync(join(tmpdir(), 'account-authz-lint-'));
const text = await envoyBootstrap();
let worst = 0;
for (const [name, [place, item]] of Object.entries(shapes)) {
  if (process.argv[2] !== undefined && !name.includes(process.argv[2])) continue;
  const items: string[] = [];
  for (let bytes = 0; bytes < size; bytes += (items.at(-1) ?? '').length + 1)
    items.push(JSON.stringify(item(items.length)));
  const before = `"${place}":[`;
  const file = join(folder, 'envoy.json');
  writeFileSync(
    file,
    text.replace(before, () => `${before}${items.join(',')},`),
  );
  const args = [
    '-f',
    '%U %S %M',
    process.execPath,
    'dist/main.js',
    'check-config',
    '--config',
    'config.example.yaml',
    '--envoy',
    file,
  ];
  const { status, stderr } = spawnSync('/usr/bin/time', args, { encoding: 'utf8', maxBuffer: 2 ** 30 });
  const lines = stderr.trimEnd().split('\n');
  const [user = 0, system = 0, kib = 0] = (lines.at(-1) ?? '').split(' ').map(Number);
  worst = Math.max(worst, user + system);
  console.log(
    `${name}: ${items.length} items, ${(user + system).toFixed(1)} s, ${Math.round(kib / 1024)} MB, exit ${status}, ${lines.length} lines`,
  );
}
rmSync(folder, { recursive: true });
process.exitCode = worst > limitSeconds ? 1 : 0;
