// The readers of untrusted bytes, each with its invariants. A target throws on a violation; keys and
// the one valid token are generated in the run.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkRequest } from '../../../lab/check-request.ts';
import { createInvariants } from '../../../lab/invariants.ts';
import { signingKey } from '../../../lab/signing-key.ts';
import { audience, claimRules, issuer, now, token } from '../../../lab/token.ts';
import { answerOf } from '../../../src/authz/refusal.ts';
import type { RequestFacts } from '../../../src/authz/request-facts.ts';
import { type Check, createCheck } from '../../../src/check/check.ts';
import { createEngine, type Engine } from '../../../src/check/engine.ts';
import { configSchema } from '../../../src/config/schema.ts';
import { createAnswers } from '../../../src/envoy/answers.ts';
import { createIdentityHeaders } from '../../../src/envoy/identity-headers.ts';
import { authorizationService } from '../../../src/envoy/proto-files.ts';
import { readRequestFacts } from '../../../src/envoy/request.ts';
import { parseKeySet, type VerificationKey } from '../../../src/keys/jwks.ts';
import { parseCompactJws } from '../../../src/token/compact.ts';
import { createVerifiedTokens } from '../../../src/token/verified-tokens.ts';
import { createTokenVerifier } from '../../../src/token/verifier.ts';
import { facts } from '../../support/facts.ts';
import { fixedKeyRings } from '../../support/fixed-key-rings.ts';
import { configTarget } from './config-target.ts';
import { identityTarget } from './identity-target.ts';
import { discoveryTarget, jwksTarget } from './key-targets.ts';
import { inFields, inSegments } from './shapes.ts';
import { type FuzzTarget, must, type Target, words } from './target.ts';

const path = '/api/subscriptions/acct1';
const project = fileURLToPath(new URL('../../../', import.meta.url));

export async function createTargets(): Promise<readonly FuzzTarget[]> {
  const good = await token({ claims: manyAccounts.claims });
  const { engine, keys } = await createParts(manyAccounts);
  const stand = withPlaceholder(good);
  return [
    { ...checkRequestTarget(good, engine), ...stand },
    { ...authorizationTarget(good, engine), ...stand },
    { ...compactJwsTarget(good, keys), ...stand },
    { ...identityTarget(), ...stand },
    { ...(await jwksTarget()), ...stand },
    { ...discoveryTarget(), ...stand },
    { ...configTarget(manyAccounts.issuerSettings), ...stand },
  ];
}

// The token is an owner in acct1 alone: a guest in acct2, and the issuer may not speak for the stranger.
const manyAccounts = {
  claims: {
    acc: undefined,
    role: undefined,
    orgs: { acct1: { roles: ['guest', 'owner'] }, acct2: { roles: ['guest'] }, stranger: { roles: ['owner'] } },
    scope: 'openid api',
    act: { sub: 'agent' },
  },
  issuerSettings: {
    claims: { acc: { keysOf: '/orgs' }, role: '/orgs/{acc}/roles', actor: '/act/sub' },
    accounts: ['acct*'],
  },
  settings: { scopes: { api: ['*'] }, hosts: ['lab.test', ':account_id.lab.test'] },
} as const;

// A token of this run does not verify in another. Files have a placeholder of its length, which every run replaces by its own token.
function withPlaceholder(good: string): Pick<FuzzTarget, 'toFile' | 'fromFile'> {
  const placeholder = 'THE-GOOD-TOKEN.'.repeat(good.length).slice(0, good.length);
  const replaced = (bytes: Buffer, from: string, to: string): Buffer =>
    Buffer.from(bytes.toString('latin1').replaceAll(from, to), 'latin1');
  return {
    toFile: input => replaced(input, good, placeholder),
    fromFile: bytes => replaced(bytes, placeholder, good),
  };
}

/** A configuration with one issuer and the key of the valid token. */
export async function createParts({
  issuerSettings = {},
  settings: { hosts, ...settings } = {},
}: {
  readonly issuerSettings?: object;
  readonly settings?: {
    readonly hosts?: readonly string[];
    readonly scopes?: object;
    readonly routes?: readonly object[];
  };
} = {}): Promise<{ engine: Engine; keys: ReadonlyMap<string, VerificationKey> }> {
  const { publicJwk } = await signingKey('k1');
  const set = await parseKeySet(Buffer.from(JSON.stringify({ keys: [publicJwk] })), ['ES256']);
  if (set.kind === 'problem') throw new Error(set.problem);
  const config = configSchema.parse({
    issuers: [
      { issuer, audiences: [audience], jwksUrl: 'https://idp.test/jwks', algorithms: ['ES256'], ...issuerSettings },
    ],
    routes: [{ path: '/api/subscriptions/:account_id/*' }],
    account: { headers: ['x-account-id'], query: ['account_id'], ...(hosts && { hosts }) },
    roles: { owner: ['*'] },
    ...settings,
  });
  return {
    engine: createEngine({ config, keyRings: fixedKeyRings(config, set.keys), now: () => now }),
    keys: set.keys,
  };
}

/** A whole check, from facts to the bytes of an answer, which must be one of the known answers. */
function createJudge(engine: Engine): (request: RequestFacts) => Promise<string> {
  const answers = createAnswers({ identityHeaders: createIdentityHeaders('x-auth-'), forward: false });
  // An instance of its own: that of the run keeps what it has seen, and a campaign may last for hours.
  const invariants = createInvariants();
  const faults: unknown[] = [];
  const check: Check = createCheck({
    current: () => ({ engine, answers }),
    record: () => undefined,
    onFault: fault => faults.push(fault),
    monotonicNow: () => 0,
  });
  return async request => {
    const answer = authorizationService.Check.responseDeserialize(await check(request));
    invariants.hold(answer);
    const fault = faults.pop();
    if (fault !== undefined) throw new Error('a fault', { cause: fault });
    const reason = answer.dynamic_metadata?.fields.reason?.stringValue ?? 'none';
    if (answer.status.code === 0) {
      must(answer.denied_response === null || answer.denied_response === undefined, 'an allow that denies');
      must(answer.ok_response?.headers.length === 6, 'an allow without the six headers');
      must(reason === 'allowed', 'an allow with another reason');
      return reason;
    }
    const row = answerOf(reason as Parameters<typeof answerOf>[0]);
    must(answer.status.code === row.rpcCode, 'the code of another reason');
    must(answer.denied_response?.status.code === row.httpStatus, 'the status of another reason');
    must(answer.ok_response === null || answer.ok_response === undefined, 'a refusal that allows');
    return reason;
  };
}

/** Whether the only authorization in these lines is the valid token. */
function bringsToken(lines: readonly string[] | undefined, good: string): boolean {
  const present = (lines ?? []).filter(line => /[^ \t]/.test(line));
  return present.length === 1 && /^[ \t]*bearer (.*?)[ \t]*$/is.exec(present[0] ?? '')?.[1] === good;
}

const requestWords = words(
  ...['Bearer ', 'bearer ', 'Basic ', 'authorization', ':path', ':method', 'x-account-id', '?account_id=', 'acct1'],
  ...['stranger', '.lab.test', 'acct1.lab.test', 'acct2.lab.test:80', ':authority', 'host', 'X-Forwarded-Host', '_'],
  ...['acct2', '/..', '%2F', '%2e%2e', ';', '//', '__proto__', '\0', '\r\n', ',', '\t', 'GET', 'x-request-id', path],
);

function checkRequestTarget(good: string, engine: Engine): Target {
  const judge = createJudge(engine);
  const headers = { authorization: `Bearer ${good}` };
  const messages = [
    checkRequest({ headers }),
    checkRequest({ raw: true, headers }),
    checkRequest({ raw: true, method: 'POST', path: `${path}/items?account_id=acct1`, headers }),
    checkRequest({ raw: true, headers: { ...headers, 'x-account-id': ['acct1', 'acct2'] } }),
    checkRequest({ headers: {} }),
    // Without `:path`, which would contradict a mutated path.
    checkRequest({ http: { headers } }),
    checkRequest({
      path: `${path}/items?account_id=acct1`,
      http: { headers: { ...headers, 'x-account-id': 'acct1' } },
    }),
    ...['acct1.lab.test', 'ACCT2.lab.test', 'acct2.lab.test:443', 'other.test'].map(host =>
      checkRequest({ headers, http: { host } }),
    ),
    checkRequest({ raw: true, headers: { ...headers, host: 'acct2.lab.test' } }),
    { attributes: null },
  ];
  const captures = join(project, 'test/fixtures/captures');
  const captured = readdirSync(captures, { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.bin'));
  return {
    name: 'check-request',
    shapes: [inFields],
    seeds: [
      ...messages.map(message => Buffer.from(authorizationService.Check.requestSerialize(message))),
      ...captured.map(name => readFileSync(join(captures, name))),
    ],
    dictionary: [...requestWords, ...[0x0a, 0x12, 0x1a, 0x22, 0x6a, 0x0b, 0x0c].map(tag => Buffer.of(tag))],
    maxBytes: 8192,
    shortRuns: 3000,
    async run(input) {
      let request: RequestFacts;
      try {
        request = readRequestFacts(input);
      } catch (error) {
        must(error instanceof Error, 'something thrown that is no error');
        return 'unreadable';
      }
      const reason = await judge(request);
      if (reason === 'allowed') {
        must(bringsToken(request.headers.get('authorization'), good), 'an allow without the good token');
        must(/^\/api\/subscriptions\/acct1(?:[/?]|$)/.test(request.target), 'an allow for another account');
      }
      return reason;
    },
  };
}

function authorizationTarget(good: string, engine: Engine): Target {
  const judge = createJudge(engine);
  return {
    name: 'authorization',
    shapes: [inSegments],
    seeds: [`Bearer ${good}`, ` bearer ${good}\t`, 'Basic dTpw', 'Bearer', '', `Bearer ${good},Bearer ${good}`].map(
      text => Buffer.from(text),
    ),
    dictionary: [...requestWords, ...jwsWords],
    maxBytes: 10_000,
    shortRuns: 3000,
    async run(input) {
      const value = input.toString('latin1');
      const reason = await judge(facts({ target: path, host: 'lab.test', headers: { authorization: value } }));
      must(reason !== 'allowed' || bringsToken([value], good), 'an allow without the good token');
      return reason;
    },
  };
}

const base64url = (text: string): string => Buffer.from(text).toString('base64url');
const jwsWords = words(
  ...['.', '..', '=', '-', '_', base64url('{"alg":"none"}'), base64url('{"alg":"HS256","kid":"k1"}'), '\u212a', '\n'],
  ...[base64url('{"alg":"ES256","kid":"k1","typ":"JWT","crit":[]}'), base64url('{}'), base64url('[]'), 'bnVsbA'],
);

function compactJwsTarget(good: string, keys: ReadonlyMap<string, VerificationKey>): Target {
  const createVerifier = () =>
    createTokenVerifier({
      issuers: new Map([
        [
          issuer,
          {
            rules: claimRules({ allowIntegerClaims: true, ...manyAccounts.issuerSettings }),
            algorithms: new Set(['ES256']),
            tokenTypes: new Set(['application/jwt']),
            keys: {
              current: kid => keys.get(kid),
              find: kid => {
                const key = keys.get(kid);
                return key === undefined ? { kind: 'unknown' } : { kind: 'key', key };
              },
            },
          },
        ],
      ]),
      times: { clockToleranceSeconds: 60, maxLifetimeSeconds: 86_400 },
      maxBytes: 8192,
      verifiedTokens: createVerifiedTokens<VerificationKey>(10),
      maxSignatures: 10,
      now: () => now,
    });
  const verifier = createVerifier();
  const [header = '', payload = '', signature = ''] = good.split('.');
  return {
    name: 'compact-jws',
    shapes: [inSegments],
    seeds: [
      good,
      `${base64url('{"alg":"none","kid":"k1"}')}.${payload}.`,
      `${header}.${base64url('{"iss":"https://idp.test","acc":1,"acc":2}')}.${signature}`,
      `${base64url('{"alg":"ES256","kid":"k1","jwk":{}}')}.${payload}.${signature}`,
      `${header}.${payload}`,
    ].map(text => Buffer.from(text)),
    dictionary: jwsWords,
    maxBytes: 10_000,
    shortRuns: 3000,
    async run(input) {
      const text = input.toString('latin1');
      const parsed = parseCompactJws(text);
      must(parsed.kind === 'compact' || parsed.reason === 'token_invalid', 'an unknown refusal');
      const { outcome } = await verifier.verify(text);
      if (outcome.kind === 'claims') {
        must(text === good, 'another text than the good token is verified');
        return 'verified';
      }
      must(['token_invalid', 'token_expired'].includes(outcome.reason), `refused as ${outcome.reason}`);
      return parsed.kind === 'compact' ? `${outcome.reason}, compact` : outcome.reason;
    },
  };
}
