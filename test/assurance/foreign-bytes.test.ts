// Properties of everything that reads foreign bytes, over known inputs with a few edits. `npm run fuzz` is the same with more runs. The decoder beside the
// library's, request targets, queries and bootstraps have theirs in the folders that mirror src/.
import { createPublicKey } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { checkRequest } from '../../lab/check-request.ts';
import { createInvariants } from '../../lab/invariants.ts';
import { signingKey } from '../../lab/signing-key.ts';
import { audience, base64url, claimRules, issuer, now, token } from '../../lab/token.ts';
import { mayClaim } from '../../src/authz/issuer-accounts.ts';
import { isAccount, isIdentityField } from '../../src/authz/principal.ts';
import { answerOf, type Reason } from '../../src/authz/refusal.ts';
import type { RequestFacts } from '../../src/authz/request-facts.ts';
import { createEngine } from '../../src/check/engine.ts';
import { validateConfig } from '../../src/config/load.ts';
import { configSchema } from '../../src/config/schema.ts';
import { authorizationService } from '../../src/envoy/protocol.ts';
import { readRequestFacts } from '../../src/envoy/request.ts';
import { parseStrictJson } from '../../src/json/strict-json.ts';
import { type KeySet, parseKeySet, type VerificationKey } from '../../src/keys/jwks.ts';
import { parseDiscovery } from '../../src/keys/key-source.ts';
import { parseRevocation } from '../../src/revocation/list-reader.ts';
import { keyUrlProblem } from '../../src/text/url.ts';
import { type IdentityRules, parseIdentity, parseSignedIdentity } from '../../src/token/identity-claims.ts';
import { createVerifiedTokens } from '../../src/token/verified-tokens.ts';
import { createTokenVerifier } from '../../src/token/verifier.ts';
import { fixedKeyRings } from '../support/fixed-key-rings.ts';
import { editedBytes, editedJson, editedText, edits, runs, withEdits } from '../support/foreign-bytes.ts';
import { createWholeCheck } from '../support/whole-check.ts';

const path = '/api/subscriptions/acct1';
const requestWords = [
  ...'Bearer |bearer |Basic |\0|\r\n|,|\t|x-request-id|\x0a|\x12|\x6a|\x0b|\x0c|/..|%2F|%2e%2e|;|//|__proto__'.split(
    '|',
  ),
  ...'authorization :path :method x-account-id ?account_id= acct1 stranger .lab.test acct2.lab.test:80 :authority host _ acct2'.split(
    ' ',
  ),
  path,
];
const jsonWords = ['"__proto__":', 'null', '{}', '[]', '\\u0000', '\\ud800', '1e999', '-0', '"', '\\', ',', '\ufeff'];

// The token is an owner in acct1 alone: a guest in acct2, and the issuer may not speak for the stranger.
const claims = {
  acc: undefined,
  role: undefined,
  orgs: { acct1: { roles: ['guest', 'owner'] }, acct2: { roles: ['guest'] }, stranger: { roles: ['owner'] } },
  scope: 'openid api',
  act: { sub: 'agent' },
};
const sources = { acc: { keysOf: '/orgs' }, role: '/orgs/{acc}/roles', actor: '/act/sub' } as const;

describe('any bytes', () => {
  let good: string;
  let keys: KeySet;
  let reasonOf: (message: Buffer) => Promise<string>;

  before(async () => {
    good = await token({ claims });
    const { publicJwk } = await signingKey('k1');
    const set = await parseKeySet(Buffer.from(JSON.stringify({ keys: [publicJwk] })), ['ES256']);
    if (set.kind === 'problem') throw new Error(set.problem);
    keys = set;
    reasonOf = await createReasonOf();
  });

  describe('of a CheckRequest', () => {
    async function expectKnownAnswer(message: Buffer): Promise<string> {
      const reason = await reasonOf(message);
      if (reason === 'allowed') expectGoodTokenAndAccount(readRequestFacts(message));
      return reason;
    }

    function expectGoodTokenAndAccount({ headers, target, host }: RequestFacts): void {
      const lines = headers.get('authorization')?.filter(line => /[^ \t]/.test(line)) ?? [];
      expect(lines).to.have.lengthOf(1);
      expect(/^[ \t]*bearer (.*?)[ \t]*$/is.exec(lines.join())?.[1] === good, 'the good token').to.equal(true);
      expect(target).to.match(/^\/api\/subscriptions\/acct1(?:[/?]|$)/);
      const query = new URLSearchParams(target.slice(target.indexOf('?') + 1)).getAll('account_id');
      for (const each of [...query, ...(headers.get('x-account-id') ?? [])]) expect(each.trim()).to.equal('acct1');
      expect(host).to.match(/^(?:acct1\.)?lab\.test\.?(?::\d+)?$/i);
    }

    const messages = (): Buffer[] => {
      const headers = { authorization: `Bearer ${good}` };
      const made = [
        checkRequest({ headers }),
        checkRequest({ raw: true, method: 'POST', path: `${path}/items?account_id=acct1`, headers }),
        checkRequest({ raw: true, headers: { ...headers, 'x-account-id': ['acct1', 'acct2'] } }),
        checkRequest({ headers: {} }),
        // Without `:path`, which would contradict an edited path.
        checkRequest({ http: { headers } }),
        checkRequest({ headers, http: { host: 'ACCT2.lab.test:443' } }),
        { attributes: null },
      ];
      return made.map(message => Buffer.from(authorizationService.Check.requestSerialize(message)));
    };

    it('allow the good token unedited', async () => {
      expect(await expectKnownAnswer(messages()[0] ?? Buffer.alloc(0))).to.equal('allowed');
    });

    it('give one of the known answers, and an allow only for the good token and its account', async () => {
      const captures = new URL('../fixtures/captures/', import.meta.url);
      const captured = readdirSync(captures, { recursive: true, encoding: 'utf8' }).filter(name =>
        name.endsWith('.bin'),
      );
      const known = [...messages(), ...captured.map(name => readFileSync(new URL(name, captures)))];
      const property = fc.asyncProperty(editedBytes(known, requestWords), async message => {
        await expectKnownAnswer(message);
      });
      await fc.assert(property, runs(1000));
    });
  });

  it('of a token are verified only for the good token itself', async () => {
    const verifier = createVerifier(keys);
    const [header = '', payload = '', signature = ''] = good.split('.');
    const known = [
      [header, payload, signature],
      [base64url('{"alg":"none","kid":"k1"}'), payload, ''],
      [header, base64url('{"iss":"https://idp.test","acc":1,"acc":2}'), signature],
      [base64url('{"alg":"ES256","kid":"k1","jwk":{}}'), payload, signature],
      [header, payload],
    ];
    const words = [...jsonWords, '.', '=', '-', '_', '"alg":"none"', '"alg":"HS256"', '"crit":[]', '\u212a', '\n'];
    const ofSegment = fc
      .tuple(fc.constantFrom(...known), fc.nat(2), edits(words))
      .map(([segments, at, changes]) =>
        segments
          .with(
            at % segments.length,
            withEdits(Buffer.from(segments[at % segments.length] ?? '', 'base64url'), changes).toString('base64url'),
          )
          .join('.'),
      );
    // The last character of a segment has bits that are not used.
    const ofLastCharacter = fc
      .tuple(fc.nat(2), fc.constantFrom(...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'))
      .map(([at, last]) =>
        good
          .split('.')
          .map((each, i) => (i === at ? each.slice(0, -1) + last : each))
          .join('.'),
      );
    const ofText = editedText(
      known.map(segments => segments.join('.')),
      words,
    );
    const property = fc.asyncProperty(fc.oneof(ofSegment, ofLastCharacter, ofText), async text => {
      const { outcome } = await verifier.verify(text, { certificate: '' });
      if (outcome.kind === 'claims') expect(text === good, 'the good token').to.equal(true);
      else expect(outcome.reason).to.be.oneOf(['token_invalid', 'token_expired']);
    });
    expect((await verifier.verify(good, { certificate: '' })).outcome.kind).to.equal('claims');
    await fc.assert(property, runs(2000));
  });

  it('of claims give an identity inside the grammars, the bounds and the tables, or token_invalid', () => {
    const base = { uid: 'u', app: 'web', acc: ['acct1', 'acct2', 'other', 'a b'], role: 'owner', scope: 'openid api' };
    const known = [
      base,
      { ...base, acc: 7, role: 10 },
      { ...base, orgs: { acct1: { roles: ['owner', 'x'] }, 7: { roles: '9' }, other: null }, act: { sub: 'agent' } },
      { ...base, grants: { owner: { acct1: 'acct.test' }, 10: { acct2: 1 }, x: [] } },
      { ...base, acc: 'acct1', orgs: { 'acct.com': {} }, scope: ['api', 'orders:read'] },
    ];
    const payloads = fc.oneof(
      editedJson(known, ['acct1', 'a  b', '10', { acct2: {} }, { roles: 'owner' }, { sub: 'agent' }]),
      editedBytes(
        known.map(it => Buffer.from(JSON.stringify(it))),
        [...jsonWords, '"acct1"', '"orgs":', '"roles":'],
      ),
    );
    const property = fc.property(payloads, fc.constantFrom(...ruleSets), (bytes, rules) => {
      const parsed = parseStrictJson(bytes);
      if (parsed.kind === 'value') expectBoundedIdentity(parsed.value, rules);
    });
    fc.assert(property, runs(2000));
  });

  it('of a key set give strong public keys, or a problem', async () => {
    const [rsa = {}, ec = {}, ...others] = await Promise.all(
      ['RS256', 'ES256', 'ES384', 'EdDSA'].map(async alg => (await signingKey(`fuzz-${alg}`, alg)).publicJwk),
    );
    const n = Buffer.from(String(rsa.n), 'base64url').subarray(0, 128);
    // An even number is no modulus.
    n[127] = 1;
    const known = [
      [rsa, ec, ...others],
      [
        { ...rsa, n: n.toString('base64url') },
        { ...ec, d: 'AAAA' },
      ],
      [
        { ...rsa, e: 'AQ' },
        { ...rsa, kid: 'three', e: 'Aw' },
        { kty: 'oct', kid: 'k', k: 'c2VjcmV0' },
      ],
      [
        { ...ec, kid: 'two', use: 'enc' },
        { ...ec, kid: 'three', key_ops: ['sign'] },
        { ...ec, kid: 'same' },
      ],
    ].map(each => ({ keys: each }));
    const sets = fc.oneof(
      editedJson(known, ['oct', 'HS256', 'none', 'P-521', 'secp256k1', 'AQ', 'AQAB', 'enc']),
      editedBytes(
        known.map(set => Buffer.from(JSON.stringify(set))),
        [...jsonWords, '"k":"A"', '"d":"A"', '{"keys":['],
      ),
    );
    expect((await parseKeySet(Buffer.from(JSON.stringify(known[0])), keyAlgorithms)).kind).to.not.equal('problem');
    const property = fc.asyncProperty(sets, async bytes => {
      const set = await parseKeySet(bytes, keyAlgorithms);
      if (set.kind !== 'problem') expectStrongKeys(set);
    });
    await fc.assert(property, runs(500));
  });

  it('of a discovery document give an https address of this issuer, or a problem', () => {
    const url = 'https://idp.test/.well-known/openid-configuration';
    const from = { url, issuer, allowHttp: false };
    const jwks_uri = 'https://idp.test/jwks';
    const known = [
      { issuer, jwks_uri },
      { issuer, jwks_uri: 'http://127.0.0.1:8080/jwks' },
      { issuer: `${issuer}/`, jwks_uri },
      { issuer, jwks_uri: 'https://user:pass@idp.test/jwks#x' },
    ];
    const words = 'http:// file:/// data:, @ localhost [::1] 169.254.169.254 %00 .. # ?'.split(' ');
    const documents = fc.oneof(
      editedJson(known, words),
      editedBytes(
        known.map(each => Buffer.from(JSON.stringify(each))),
        [...jsonWords, ...words],
      ),
    );
    expect(parseDiscovery({ bytes: Buffer.from(JSON.stringify(known[0])) }, from)).to.equal(jwks_uri);
    const property = fc.property(documents, bytes => {
      const found = parseDiscovery({ bytes }, from);
      if (typeof found !== 'string') return;
      const metadata = JSON.parse(bytes.toString('utf8')) as Record<string, unknown>;
      expect(metadata).to.include({ issuer, jwks_uri: found });
      expect(keyUrlProblem(found)).to.equal(undefined);
      expect(new URL(found)).to.include({ protocol: 'https:', username: '', password: '' });
    });
    fc.assert(property, runs(2000));
  });

  it('of a configuration give settings that check something, or printable problems at places of the file', async () => {
    const words = [
      ...'issuers:,routes:,roles:,algorithms: [none],HS256,- ,: ,&a ,*a,!!binary ,<<: ,? ,",\',|\n,{,},[,],\t,---\n'.split(
        ',',
      ),
      ...'~ 0x10 1e999 .inf "*" __proto__ /* :account_id {acc} keysOf:  wordsOf:  hosts:  \ufeff # %YAML'.split(' '),
    ];
    // No such folder exists: a file name in the configuration leads to a problem and nothing else.
    const file = join(tmpdir(), 'account-authz-has-no-such-folder', 'config.yaml');
    const example = readFileSync(new URL('../../config.example.yaml', import.meta.url));
    const known = [example, ...configurations().map(each => Buffer.from(JSON.stringify(each)))];
    // Inputs that earlier searches found.
    const found = [
      'issuers: &a [*a]\nroutes: !!set {}\n? [x]\n: y\n',
      'issuers: &a [*a',
      'routes: !!set {}\n? ',
      '? .x]\n: y',
    ];
    const files = fc.oneof(
      editedBytes([...known, ...found.map(each => Buffer.from(each))], words),
      editedJson(configurations(), ['*', ':account_id', '/healthz', 'none', 'https://idp.test/x', 7, { keysOf: '/x' }]),
    );
    const property = fc.asyncProperty(files, async bytes => {
      const judged = await validateConfig({ kind: 'bytes', bytes }, file);
      if (judged.kind === 'misconfiguration') {
        expect(judged.problems).to.not.have.lengthOf(0);
        for (const { line, column, message } of judged.problems) {
          expect(Math.min(line, column)).to.be.at.least(1);
          expect(message).to.match(/^[^\p{Cc}\p{Zl}\p{Zp}]+$/u);
        }
        return;
      }
      const { config } = judged;
      expect(Math.min(config.issuers.length, config.routes.length, config.roles.size)).to.be.at.least(1);
      for (const each of config.issuers) {
        expect(Math.min(each.audiences.length, each.issuer.length, each.algorithms.length)).to.be.at.least(1);
        expect(each.algorithms.join()).to.match(/^(?:(?:[RPE]S(?:256|384|512)|EdDSA|Ed25519),?)+$/);
        expect([each.jwksUrl, each.discoveryUrl, each.jwksFile].some(source => source !== undefined)).to.equal(true);
      }
      createEngine({ config, keyRings: fixedKeyRings(config, { keys: new Map(), kids: new Set() }), now: () => now });
    });
    await fc.assert(property, runs(300));
  });

  it('of a line of the revocation list give an entry that selects tokens, or printable problems', () => {
    const known = [
      { iss: issuer, uid: 'u-1', acc: 'acct1', app: 'web', sid: 's', jti: 'j', issuedBefore: '2026-11-23T04:00:00Z' },
      { uid: 'u-1', expires: '2026-11-23T04:00:00+01:00' },
    ];
    const lines = fc.oneof(
      editedJson(known, ['*', 'a b', '2026-13-01T00:00:00Z']),
      editedBytes(
        known.map(each => Buffer.from(JSON.stringify(each))),
        jsonWords,
      ),
    );
    const property = fc.property(lines, line => {
      const entry = parseRevocation(line);
      if (entry.kind === 'revocation') expect(Object.keys(entry.values)).to.not.have.lengthOf(0);
      else for (const { message } of entry.problems) expect(message).to.match(/^[\x20-\x7e]+$/);
    });
    fc.assert(property, runs(1000));
  });
});

/** The reason of the answer, which must be one of the known answers. */
async function createReasonOf(): Promise<(message: Buffer) => Promise<string>> {
  const [, { issuers: [{ issuer: _, ...issuerSettings } = {}] = [], ...settings } = {}] = configurations();
  const check = await createWholeCheck(settings, issuerSettings);
  // An instance of its own: that of the run keeps every answer.
  const invariants = createInvariants();
  return async message => {
    const bytes = await check(message);
    if (bytes === 'unreadable') return bytes;
    const answer = authorizationService.Check.responseDeserialize(bytes);
    invariants.hold(answer);
    const reason = answer.dynamic_metadata?.fields.reason?.stringValue ?? 'none';
    if (answer.status.code === 0) {
      expect(answer.ok_response?.headers).to.have.lengthOf(6);
      expect(reason).to.equal('allowed');
    } else {
      const { rpcCode, httpStatus } = answerOf(reason as Reason);
      expect([answer.status.code, answer.denied_response?.status.code]).to.deep.equal([rpcCode, httpStatus]);
    }
    return reason;
  };
}

/** Loose settings: a small file, that of the whole check, and one with most keys. */
function configurations() {
  const one = { issuer, audiences: [audience], jwksUrl: 'https://idp.test/jwks' };
  const smallest = {
    issuers: [one],
    routes: [{ path: '/api/subscriptions/:account_id/*', roles: ['owner'] }],
    account: { headers: ['x-account-id'], query: ['account_id'] },
    roles: { owner: ['*'] },
  };
  return [
    smallest,
    {
      ...smallest,
      issuers: [{ ...one, algorithms: ['ES256'], claims: sources, accounts: ['acct*'] }],
      scopes: { api: ['*'] },
      account: { ...smallest.account, hosts: ['lab.test', ':account_id.lab.test'] },
    },
    {
      ...smallest,
      issuers: [
        { ...one, claims: { acc: 'list', role: { keysOf: '/grants/{acc}', having: '{acc}' }, scope: '/s/{acc}' } },
        { ...one, issuer: 'b', claims: sources, accounts: ['acct*'] },
      ],
      account: { hosts: [':tenant.api.test', 'api.test'], parameter: 'tenant', dots: true },
      routes: [{ path: '/v1/:tenant/*', scopes: ['api'], characters: 'rfc3986' }],
      public: [{ path: '/healthz' }],
      scopes: { api: ['*'], 7: ['GET'] },
      protectedResource: { resource: 'https://api.test/v1' },
    },
  ];
}

function createVerifier(keys: KeySet) {
  const ring = fixedKeyRings({ issuers: configSchema.parse(configurations()[1]).issuers }, keys).get(issuer);
  if (ring === undefined) throw new Error('no key ring');
  const trusted = {
    rules: claimRules({ allowIntegerClaims: true, claims: sources, accounts: ['acct*'] }),
    algorithms: new Set(['ES256']),
    tokenTypes: new Set(['application/jwt']),
    keys: ring,
  };
  return createTokenVerifier({
    issuers: new Map([[issuer, trusted]]),
    times: { clockToleranceSeconds: 60, maxLifetimeSeconds: 86_400 },
    maxBytes: 8192,
    verifiedTokens: createVerifiedTokens<VerificationKey>(10),
    maxSignatures: 10,
    now: () => now,
  });
}

const tables = { roles: ['owner', '10', '9'], scopes: ['api', 'orders:read'], accounts: ['acct*', '7'] };
const ruleSets: readonly IdentityRules[] = [
  claimRules({ ...tables, allowIntegerClaims: true }),
  claimRules({ ...tables, claims: { acc: { keysOf: '/orgs' }, role: '/orgs/{acc}/roles', actor: '/act/sub' } }),
  claimRules({ ...tables, claims: { role: { keysOf: 'grants', having: '{acc}' }, scope: '/orgs/{acc}/roles' } }),
  claimRules({ ...tables, dots: true, claims: { acc: { keysOf: 'orgs' }, role: { wordsOf: 'scope' } } }),
];

function expectBoundedIdentity(payload: unknown, rules: IdentityRules): void {
  const signed = parseSignedIdentity(payload, rules);
  for (const field of [signed.uid, signed.app, signed.actor])
    expect(field === undefined || isIdentityField(field)).to.equal(true);
  const identity = parseIdentity(payload, rules);
  if ('kind' in identity) {
    expect(identity.reason).to.equal('token_invalid');
    return;
  }
  const { uid, app, actor, accounts, role, scope } = identity;
  expect(signed).to.include({ uid, app, actor });
  const names = typeof accounts === 'string' ? [accounts] : 'kind' in accounts ? [] : [...accounts];
  expect(names.length).to.be.at.most(1000);
  expect(typeof accounts === 'string' || names.length !== 1, 'never a set of one account').to.equal(true);
  for (const name of names) expect(isAccount(name, rules.grammar) && mayClaim(rules.accounts, name)).to.equal(true);
  for (const { claimed, table } of [
    { claimed: role, table: rules.roles },
    { claimed: scope, table: rules.scopes },
  ]) {
    const byAccount = typeof claimed === 'object' && 'kind' in claimed ? new Map(claimed.claimed) : undefined;
    if (byAccount !== undefined) expect([...byAccount.keys()]).to.have.members(names);
    for (const each of byAccount?.values() ?? [claimed]) {
      // One name that stands alone is kept for the log, whatever it is.
      const granted = typeof each === 'string' || 'kind' in each ? [] : each;
      expect(granted.filter(name => table?.byName.has(name) !== true)).to.deep.equal([]);
    }
  }
}

const keyAlgorithms = ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA'];

function expectStrongKeys({ keys, publicJwks }: KeySet): void {
  expect(keys.size).to.be.at.least(1);
  for (const key of keys.keys()) {
    expect(key.kid?.length ?? 1).to.be.within(1, 256);
    const usable = (alg: string): boolean => key.cryptoKeyFor(alg) !== undefined;
    expect(['none', 'HS256', 'HS384', 'HS512', '', '__proto__', 'ES512'].filter(usable)).to.deep.equal([]);
    expect(keyAlgorithms.filter(usable)).to.not.have.lengthOf(0);
  }
  for (const jwk of publicJwks) {
    expect(jwk).to.not.have.any.keys('d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k', 'priv');
    const { modulusLength = 2048, publicExponent = 65_537n } =
      createPublicKey({ key: jwk, format: 'jwk' }).asymmetricKeyDetails ?? {};
    expect(modulusLength).to.be.within(2048, 8192);
    expect(publicExponent >= 65_537n && publicExponent % 2n === 1n).to.equal(true);
  }
}
