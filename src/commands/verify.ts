// `verify`: asks a running gateway from outside, and says whether it does what the configuration says.
import { compileIssuerAccounts, mayClaim } from '../authz/issuer-accounts.ts';
import { isAccount } from '../authz/principal.ts';
import type { Config } from '../config/schema.ts';
import { fetchKeys } from '../explain/current-keys.ts';
import { loadRegularFile } from '../files/bounded-file.ts';
import { parseCertificates } from '../files/certificates.ts';
import { memberOf } from '../json/strict-json.ts';
import { type IssuerRing, isKeyFileError } from '../keys/key-ring.ts';
import { loadRevocations } from '../revocation/revocation-file.ts';
import type { RevocationList } from '../revocation/revocation-list.ts';
import { printable } from '../text/printable.ts';
import type { Problem } from '../text/problem.ts';
import { compileSource, readSource } from '../token/claim-source.ts';
import { parseCompactJws } from '../token/compact.ts';
import { ask, type Gateway, gatewayRule, parseGatewayUrl } from '../verify/ask.ts';
import { createExpectation } from '../verify/expected.ts';
import { falseToken } from '../verify/false-token.ts';
import { type GivenToken, hostEntryOf, maxRequests, planRequests } from '../verify/plan.ts';
import { type AskedRequest, differencesIn, type LeftOut, toJson, toTable } from '../verify/report.ts';
import { version } from '../version.ts';
import { type CommandIo, defaultConfigFile, helpOption, parseCommandLine, usageError } from './command.ts';
import { proxyOf } from './environment.ts';
import { loadFetchingConfig } from './fetching-config.ts';
import { readInput, toAuthorization } from './token-input.ts';

const usage = `account-authz verify URL [--config FILE] [--ca FILE] [--json]

Asks a running gateway from outside and says whether it does what the configuration says. It sends GET requests without a body, at
most ${maxRequests}: without a token, with a false signature, for another account, for a path that no route matches, and last the token's own
account. Reads a token from standard input and never prints it; empty input is no token. Connects to URL alone and follows no redirect.

  URL            https://HOST or https://HOST:PORT of the gateway (http only for loopback addresses)
  --config FILE  the configuration, ${defaultConfigFile} if not given
  --ca FILE      trusts these certificate authorities too: a PEM file
  --json         prints { url, requests: [{ request, expected, actual, asExpected, meaning, look }], leftOut, notes }

Example: account-authz verify https://gateway.example --config config.yaml < token.txt

Exit code: 0 as expected, 3 not, 1 invalid configuration, usage error, no answer within 5 seconds, or no keys here.
`;

const maxTextLength = 2048;

export async function verify(args: readonly string[], io: CommandIo): Promise<number> {
  const fail = (problem: string): number => usageError(io, 'verify', problem);
  const options = {
    config: { type: 'string' },
    ca: { type: 'string' },
    json: { type: 'boolean', default: false },
    ...helpOption,
  } as const;
  const parsed = parseCommandLine({ name: 'verify', usage, args, options, maxOperands: 1 }, io);
  if (parsed.kind === 'end') return parsed.code;
  const { config: file = defaultConfigFile, ca: caFile, json } = parsed.values;
  const [operand] = parsed.operands;
  const url = operand === undefined ? undefined : parseGatewayUrl(operand);
  if (url === undefined) return fail(gatewayRule);
  const ca = await loadAuthorities(caFile);
  if (typeof ca === 'object') return fail(`--ca: ${ca.problem}`);
  // The machine has the files of the service only by chance.
  const loaded = await loadFetchingConfig('verify', file, io, { readsNamedFiles: false });
  if (loaded === undefined) return 1;
  const { config } = loaded;
  if (config.account.hosts !== undefined && hostEntryOf(config.account, url.hostname) === undefined)
    return fail('URL must have a host that an entry of account.hosts matches');
  // A terminal would wait for input, and the token is optional.
  const input = io.stdin.isTTY === true ? undefined : await readInput('verify', io, 'a token');
  if (input?.kind === 'problem') return fail(input.problem);
  const authorization = toAuthorization(input?.bytes.toString('latin1') ?? '');
  if (authorization.kind === 'problem') return fail(authorization.problem);

  const warn = (warning: string): unknown =>
    io.stderr.write(`account-authz verify: warning: ${printable(warning, maxTextLength)}\n`);
  const revocations = await loadRevocationList(config, warn);
  const token = authorization.value === undefined ? undefined : readToken(authorization.value, config);
  const keys = await loadKeys(config, io, warn);
  try {
    const gateway = { url, ca, userAgent: `account-authz-verify/${version}` };
    const { asked, leftOut, notes, failure } = await askAll({ config, rings: keys.rings, revocations, token, gateway });
    const verification = { origin: url.origin, file, asked, leftOut, notes };
    io.stdout.write(json ? toJson(verification) : toTable(verification));
    if (failure !== undefined) return fail(failure);
    return differencesIn(verification).every(each => each === undefined) ? 0 : 3;
  } finally {
    await keys.stop();
  }
}

interface Asking {
  readonly config: Config;
  readonly rings: readonly IssuerRing[];
  readonly revocations: RevocationList | undefined;
  readonly token: GivenToken | undefined;
  readonly gateway: Gateway;
}

interface AskedAll {
  readonly asked: readonly AskedRequest[];
  readonly leftOut: readonly LeftOut[];
  readonly notes: readonly string[];
  /** Why the verification is incomplete: exit code 1. */
  readonly failure: string | undefined;
}

/** Sends the planned requests one after the other, until one has no answer. */
async function askAll({ config, rings, revocations, token, gateway }: Asking): Promise<AskedAll> {
  const now = (): number => Date.now() / 1000;
  const kidOf = (issuer: string): string =>
    rings.find(ring => ring.issuer === issuer)?.status().kids[0] ?? 'unavailable';
  const falseTokens = config.issuers.map(issuer => falseToken(issuer, kidOf(issuer.issuer), now()));
  const { requests, omitted } = planRequests({ config, host: gateway.url.host, falseTokens, token });
  const expectationOf = createExpectation({
    config,
    keyRings: new Map(config.issuers.map(({ issuer }) => [issuer, rings.find(r => r.issuer === issuer) ?? noKeys])),
    revocations,
    now,
  });
  const asked: AskedRequest[] = [];
  const withoutKeys: string[] = [];
  const notes =
    token?.accounts.length === 0 ? ['the token has no account that its issuer may speak for: none is tried'] : [];
  for (const [i, planned] of requests.entries()) {
    const expected = await expectationOf(planned);
    const { purpose } = planned;
    if (expected.kind === 'refused' && expected.reason === 'keys_unavailable') {
      withoutKeys.push(planned.name);
      continue;
    }
    const answer = await ask(gateway, planned);
    if (answer.kind === 'no answer') {
      const rest = [{ names: requests.slice(i).map(({ name }) => name), why: 'no answer from the gateway' }];
      return { asked, leftOut: rest, notes, failure: `${gateway.url.origin} does not answer: ${answer.problem}` };
    }
    asked.push({ planned, purpose, expected, answer });
  }
  const refused = asked.find(({ purpose, expected }) => purpose.kind === 'own account' && expected.kind === 'refused');
  if (refused?.expected.kind === 'refused')
    notes.push(
      `the token itself is refused here (${refused.expected.reason}), so no allow is shown for "${refused.planned.name}": account-authz explain says why`,
    );
  if (token === undefined) notes.push('no token on standard input: nothing shows that a good token is allowed');
  const failing = asked.find(
    ({ expected, answer }) => expected.kind === 'passed' && (answer.status === 403 || answer.status >= 500),
  );
  if (failing?.answer.reason === undefined && failing !== undefined)
    notes.push(
      `${failing.answer.status} for "${failing.planned.name}" is not from account-authz: Envoy (is its call of account-authz failing?) or the API wrote it`,
    );
  return {
    asked,
    notes,
    leftOut: [
      { names: omitted, why: `at most ${maxRequests} requests are sent` },
      { names: withoutKeys, why: 'the keys of the issuer cannot be had here' },
    ],
    failure:
      withoutKeys.length === 0
        ? undefined
        : 'the keys of the issuer cannot be had here: only requests without them were sent',
  };
}

const unavailable = { kind: 'unavailable', detail: 'no key set yet' } as const;
/** Of an issuer whose keys were not to be had. */
const noKeys = { current: () => undefined, find: () => unavailable };

async function loadKeys(config: Config, io: CommandIo, warn: (warning: string) => unknown) {
  const nothing = { rings: [], stop: async () => undefined };
  try {
    const keyRings = await fetchKeys({ config, proxy: proxyOf(io.env), onWarning: warn });
    return { rings: keyRings.active(), stop: () => keyRings.stop() };
  } catch (error) {
    if (!isKeyFileError(error)) throw error;
    warn(error.message);
    return nothing;
  }
}

/** What cannot be read is a warning: the list is on the machine of the service. */
async function loadRevocationList(
  { revocation }: Config,
  warn: (warning: string) => unknown,
): Promise<RevocationList | undefined> {
  if (revocation === undefined) return undefined;
  const loaded = await loadRevocations(revocation.file);
  if (loaded.kind === 'revocations') return loaded.list;
  const why = loaded.kind === 'problem' ? loaded.problem : `line ${loaded.problems[0]?.line} is invalid`;
  warn(`revocation.file: ${why}: a revoked token is expected to be allowed`);
  return undefined;
}

async function loadAuthorities(file: string | undefined): Promise<string | undefined | Problem> {
  if (file === undefined) return undefined;
  const loaded = await loadRegularFile(file);
  if (loaded.kind === 'problem') return loaded;
  const parsed = parseCertificates(loaded.bytes);
  return parsed.kind === 'problem' ? parsed : parsed.certificates.map(each => each.toString()).join('');
}

/** Reads the accounts alone, without a check: the engine judges the token. */
function readToken(authorization: string, { issuers, account }: Config): GivenToken {
  const jws = parseCompactJws(authorization.replace(/^bearer +/i, ''));
  if (jws.kind === 'refusal') return { authorization, accounts: [] };
  const issuer = issuers.find(each => each.issuer === memberOf(jws.payload, 'iss'));
  if (issuer === undefined) return { authorization, accounts: [] };
  const value = readSource(jws.payload, compileSource(issuer.claims.acc));
  const texts = typeof value === 'string' || typeof value === 'number' ? [String(value)] : value;
  const owned = compileIssuerAccounts(issuer.accounts);
  const accounts = Array.isArray(texts) ? texts : [];
  return {
    authorization,
    accounts: accounts.filter(each => isAccount(each, account.dots) && mayClaim(owned, each)),
  };
}
