// `npm run producers`: tokens of JWT libraries in five languages against the service. Each good one must be accepted, each tampered one
// refused. Needs Python, Go, Java with Maven, and Rust; a language that is absent is named. Exits with 1 if one was answered wrongly.
import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkRequest } from '../../lab/check-request.ts';
import { connect, reasonOf } from '../../lab/service.ts';
import { startServiceProcess } from '../../lab/service-process.ts';
import { programs } from './programs.ts';
import { tampered } from './tampered.ts';

const issuer = 'https://auth.example.com';
const audience = 'https://api.example.com/subscriptions';
const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'] as const;
const curves: Readonly<Record<string, string>> = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' };

interface Row {
  accepted: number;
  valid: number;
  refused: number;
  tampered: number;
  readonly algorithms: Set<string>;
}

const keys = algorithms.map(alg => {
  const curve = curves[alg];
  const { privateKey, publicKey } =
    curve !== undefined
      ? generateKeyPairSync('ec', { namedCurve: curve })
      : alg === 'EdDSA'
        ? generateKeyPairSync('ed25519')
        : generateKeyPairSync('rsa', { modulusLength: 2048 });
  const pem = String(privateKey.export({ type: 'pkcs8', format: 'pem' }));
  return { job: { alg, kid: alg, pem }, jwk: { ...publicKey.export({ format: 'jwk' }), kid: alg, alg, use: 'sig' } };
});
const seconds = Math.floor(Date.now() / 1000);
const base = {
  iss: issuer,
  uid: 'alice',
  app: 'web',
  acc: 'acme',
  role: 'owner',
  iat: seconds - 10,
  exp: seconds + 3600,
};
const claims = [
  { ...base, aud: audience },
  { ...base, aud: ['https://other.example.com', audience], nbf: seconds - 10, jti: 'a1' },
  {
    ...base,
    aud: audience,
    name: 'Ünïcode ✓ "quoted" \\ and\nmore',
    address: { locality: 'Łódź', list: [1, 2.5, null, true] },
  },
  { ...base, aud: [audience], sub: 'x'.repeat(1500) },
];

const directory = await mkdtemp(join(tmpdir(), 'producers-'));
const job = join(directory, 'job.json');
await writeFile(job, JSON.stringify({ keys: keys.map(each => each.job), claims }), { mode: 0o600 });
const jwksFile = join(directory, 'jwks.json');
await writeFile(jwksFile, JSON.stringify({ keys: keys.map(each => each.jwk) }));
const service = await startServiceProcess({
  listen: '127.0.0.1:0',
  admin: '127.0.0.1:0',
  issuers: [{ issuer, audiences: [audience], jwksFile, algorithms: [...algorithms], tokenTypes: ['JWT', ''] }],
  routes: [{ path: '/api/subscriptions/*' }],
  roles: { owner: ['*'] },
  log: { level: 'info' },
});
const client = connect(service.address);
const rows = new Map<string, Row>();
const absent: string[] = [];
const wrong: string[] = [];
try {
  for (const { language, prepare, run } of programs) {
    process.stderr.write(`${language} …\n`);
    const output = await prepare().then(
      () => run(job),
      (error: NodeJS.ErrnoException) => {
        absent.push(
          `${language} (${error.code === 'ENOENT' ? 'not on this machine' : 'its libraries cannot be built'})`,
        );
        return '';
      },
    );
    for (const line of output.split('\n').filter(Boolean)) await judge(language, JSON.parse(line));
  }
} finally {
  client.close();
  await service.stop();
  await rm(directory, { recursive: true });
}

/** A line without a token: the library has no such algorithm. */
async function judge(language: string, line: { library: string; alg: string; token?: string }): Promise<void> {
  const { library, alg, token } = line;
  if (token === undefined) return;
  const name = `${library} | ${language}`;
  const row = rows.get(name) ?? { accepted: 0, valid: 0, refused: 0, tampered: 0, algorithms: new Set<string>() };
  rows.set(name, row);
  row.algorithms.add(alg);
  row.valid += 1;
  const reason = await reasonFor(token);
  if (reason === 'allowed') row.accepted += 1;
  else wrong.push(`${name} ${alg}: a good token is ${reason}`);
  for (const [i, changed] of tampered(token).entries()) {
    row.tampered += 1;
    if ((await reasonFor(changed)) !== 'allowed') row.refused += 1;
    else wrong.push(`${name} ${alg}: change ${i} is allowed`);
  }
}

async function reasonFor(token: string): Promise<string> {
  const path = '/api/subscriptions/items';
  return reasonOf(await client.check(checkRequest({ path, headers: { authorization: `Bearer ${token}` } })));
}

const table = [
  '| library | language | algorithms | accepted | refused |',
  '|---|---|--:|--:|--:|',
  ...Array.from(
    rows,
    ([name, row]) =>
      `| ${name} | ${row.algorithms.size} | ${row.accepted} of ${row.valid} | ${row.refused} of ${row.tampered} |`,
  ),
];
process.stdout.write(`${table.join('\n')}\n`);
for (const each of absent) process.stdout.write(`not run: ${each}\n`);
for (const each of wrong) process.stdout.write(`WRONG ${each}\n`);
const sum = (count: (row: Row) => number): number => Array.from(rows.values(), count).reduce((a, b) => a + b, 0);
process.stdout.write(
  `${sum(row => row.accepted)} of ${sum(row => row.valid)} good tokens accepted, ${sum(row => row.refused)} of ${sum(row => row.tampered)} tampered refused\n`,
);
process.exitCode = wrong.length === 0 && rows.size > 0 ? 0 : 1;
