// `npm run wycheproof`: runs the JSON Web Signature vectors of Project Wycheproof through the key set reader and the signature
// verifier. Needs Go, which downloads them through its module proxy. Exits with 1 if an invalid one is accepted or a valid one refused.
import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseKeySet } from '../src/keys/jwks.ts';
import { isSignedBy } from '../src/token/signature.ts';

const module = 'github.com/c2sp/wycheproof@v0.0.0-20260902155932-3fa63dd0344a';
const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'];

interface Group {
  readonly comment: string;
  readonly public?: Readonly<Record<string, unknown>>;
  readonly tests: readonly {
    readonly tcId: number;
    readonly comment: string;
    readonly jws: string;
    readonly result: string;
  }[];
}

const { Dir } = JSON.parse(
  execFileSync('go', ['mod', 'download', '-json', module], { cwd: tmpdir(), encoding: 'utf8' }),
) as { readonly Dir: string };
const { testGroups } = JSON.parse(
  await readFile(join(Dir, 'testvectors_v1', 'json_web_signature_test.json'), 'utf8'),
) as { readonly testGroups: readonly Group[] };

const counts = { accepted: 0, refused: 0, 'skipped, because the key is not supported': 0 };
const wrong: string[] = [];
for (const { comment, public: jwk, tests } of testGroups) {
  const set = jwk === undefined ? undefined : await keySetOf(jwk);
  const key = set?.kind === 'keySet' ? [...set.keys.keys()][0] : undefined;
  for (const { tcId, comment: what, jws, result } of tests) {
    const alg = algOf(jws);
    const cryptoKey = key?.cryptoKeyFor(alg);
    const isAccepted = cryptoKey !== undefined && (await isSignedBy(cryptoKey, alg, jws));
    if (isAccepted) counts.accepted += 1;
    else if (key === undefined) counts['skipped, because the key is not supported'] += 1;
    else counts.refused += 1;
    // A key serves the algorithm that it names, and no other (RFC 7517 section 4.4).
    if (isAccepted !== (result === 'valid') && (isAccepted || cryptoKey !== undefined))
      wrong.push(`${tcId} ${comment}: ${what} is ${result} and ${isAccepted ? 'accepted' : 'refused'}`);
  }
}
for (const [what, count] of Object.entries(counts)) process.stdout.write(`${what}: ${count}\n`);
for (const line of wrong) process.stdout.write(`WRONG ${line}\n`);
process.stdout.write(`${wrong.length} wrong\n`);
process.exitCode = wrong.length === 0 ? 0 : 1;

function keySetOf(jwk: Readonly<Record<string, unknown>>) {
  return parseKeySet(Buffer.from(JSON.stringify({ keys: [{ kid: 'wycheproof', ...jwk }] })), algorithms);
}

function algOf(jws: string): string {
  try {
    return String(JSON.parse(Buffer.from(jws.split('.')[0] ?? '', 'base64url').toString()).alg);
  } catch {
    return 'none';
  }
}
