// The output of the explain command: text, JSON, no secret, and the detail that it gives for each failed check.

import { stripVTControlCharacters } from 'node:util';
import { expect } from 'chai';
import fc from 'fast-check';
import type { Outcome } from '../../lab/command.ts';
import { signingKey } from '../../lab/signing-key.ts';
import { audience, type TokenParts, uid } from '../../lab/token.ts';
import { dottedIssuer, explanationOf, runExplain } from '../toolkit/explain/explain-lab.ts';
import { controlSequence, path, useExplainLab } from './explain-config.ts';

describe('output of explain', () => {
  const explain = useExplainLab();
  const { run, runWith, detailOf } = explain;

  describe('--json', () => {
    it('prints exactly the documented members', async () => {
      for (const args of [['--json'], ['--json', '--method', 'POST', '--header', 'x-account-id: acct2']]) {
        const explanation = explanationOf(await run(args));
        expect(Object.keys(explanation)).to.deep.equal(['decision', 'reason', 'status', 'headers', 'checks']);
        for (const check of explanation.checks) expect(Object.keys(check)).to.deep.equal(['name', 'verdict', 'detail']);
      }
    });

    it('prints the identity headers of an allow, with status 200', async () => {
      const { headers, ...rest } = explanationOf(await run(['--json']));
      expect(rest).to.include({ decision: 'allow', reason: 'allowed', status: 200 });
      expect(headers).to.deep.equal({
        'x-auth-uid': uid,
        'x-auth-app': 'web',
        'x-auth-acc': 'acct1',
        'x-auth-role': 'owner',
        'x-auth-iss': explain.lab.issuer.url,
      });
    });

    it('never prints colours', async () => {
      const options = { input: explain.token, env: { FORCE_COLOR: '1' }, isTTY: true };
      const args = ['--config', explain.lab.configFile, '--path', path, '--json'];
      expect((await runExplain(args, options)).stdout).to.not.contain(controlSequence);
    });
  });

  describe('text output', () => {
    it('has a line for each check, for the keys and for the answer', async () => {
      const { stdout } = await run(['--header', 'X-Account-Id: \tacct2\t ']);
      expect(stdout).to.match(/^pass {9}route {11}\/api\/subscriptions\/accounts\/:account_id\/\*$/m);
      expect(stdout).to.match(/^fail {9}account-named {3}.*acc in the token is acct1.*the header x-account-id\)$/m);
      expect(stdout).to.match(/^keys of http:\S+: 2 keys in use, confirmed .* ago$/m);
      expect(stdout).to.match(
        /^keys of https:\/\/unreachable\.test: 0 keys in use, no key set yet; .*connection refused$/m,
      );
      expect(stdout).to.match(/^deny: 403 account_mismatch$/m);
      expect(stdout).to.match(/^ {2}the client gets {2}cache-control: no-store$/m);
    });

    it('lists the headers that the upstream gets and does not get', async () => {
      const { stdout } = await run([]);
      expect(stdout).to.match(/^allow: 200 allowed$/m);
      expect(stdout).to.match(/^ {2}the upstream gets {2}x-auth-acc: acct1$/m);
      expect(stdout).to.match(/^ {2}it does not get {2}authorization$/m);
    });

    it('marks checks after the refusal as not reached', async () => {
      const { stdout } = await run(['--method', 'get']);
      expect(stdout).to.match(/^not reached {2}account$/m);
    });

    const colours: readonly (readonly [
      name: string,
      env: Readonly<Record<string, string>>,
      isTTY: boolean,
      coloured: boolean,
    ])[] = [
      ['a terminal', {}, true, true],
      ['no terminal', {}, false, false],
      ['NO_COLOR', { NO_COLOR: '1' }, true, false],
      ['an empty NO_COLOR', { NO_COLOR: '' }, true, true],
      ['a dumb terminal', { TERM: 'dumb' }, true, false],
      ['FORCE_COLOR', { FORCE_COLOR: '1' }, false, true],
      ['FORCE_COLOR=0', { FORCE_COLOR: '0' }, true, false],
      ['FORCE_COLOR over NO_COLOR', { FORCE_COLOR: '1', NO_COLOR: '1' }, false, true],
    ];
    for (const [name, env, isTTY, coloured] of colours) {
      it(`is ${coloured ? '' : 'not '}coloured with ${name}, and has the same text`, async () => {
        const args = ['--config', explain.lab.configFile, '--path', path, '--method', 'get'];
        const { stdout } = await runExplain(args, { env, isTTY });
        expect(stdout.includes(controlSequence)).to.equal(coloured);
        const plain = withoutAge((await runExplain(args)).stdout);
        expect(plain).to.contain('deny: 400 request_invalid\n');
        expect(withoutAge(stripVTControlCharacters(stdout))).to.equal(plain);
      });
    }
  });

  describe('secrets', () => {
    // Segments of the token, and values of its claims.
    const expectNothingOf = ({ stdout, stderr }: Outcome, secrets: readonly string[]): void => {
      for (const secret of secrets) expect(stdout + stderr).to.not.contain(secret);
    };

    it('of an unverified token are never printed, but alg, typ, kid and iss', async () => {
      const key = { ...(await signingKey('forger')), kid: 'k1' };
      const forged = { uid: 'swordfish', app: 'swordfish', acc: 'swordfish', role: 'swordfish-r', aud: 'swordfish-d' };
      const named = ['herring-i', 'herring-k', 'herring-t', 'herring-g'];
      const [iss = '', kid = '', typ = '', alg = ''] = named;
      const variants: readonly TokenParts[] = [
        { key, claims: forged },
        { claims: { ...forged, iss } },
        { header: { kid }, claims: forged },
        { header: { typ }, claims: forged },
        { header: { alg }, claims: forged },
        { header: { crit: ['swordfish-x'] }, claims: forged },
        { claims: { ...forged, aud: audience, exp: 'swordfish-e' } },
      ];
      const printed: string[] = [];
      for (const parts of variants) {
        const text = await explain.lab.token(parts);
        for (const args of [[], ['--json']]) {
          const outcome = await run([...args], text);
          expect(outcome.code).to.equal(3);
          expectNothingOf(outcome, ['swordfish', ...text.split('.')]);
          printed.push(...(outcome.stdout.match(/herring-./g) ?? []));
        }
      }
      // What its holder needs to know, and what says nothing of who it is.
      expect([...new Set(printed)]).to.have.members(named);
    });

    it('of a verified token, the query or a header are never printed', async () => {
      const target = `${path}?access_token=${explain.token}&q=swordfish`;
      const headers = ['--header', 'cookie: session=swordfish', '--header', `x-account-id: acct1`];
      for (const more of [[], ['--json'], ['--method', 'TRACE'], ['--header', 'x-account-id: swordfish']]) {
        const outcome = await run(
          ['--path', target, ...headers, ...more],
          await explain.lab.token({ claims: { email: 'swordfish' } }),
        );
        expectNothingOf(outcome, ['swordfish', 'access_token', ...explain.token.split('.')]);
      }
    });

    it('of any text in place of a token are never printed', async () => {
      const text = fc
        .string({ minLength: 12, maxLength: 60, unit: fc.constantFrom(...'abcXYZ019-_.{}" ') })
        .map(each => `Q${each}Q`);
      await fc.assert(
        fc.asyncProperty(text, fc.constantFrom('', '--json'), async (input, json) => {
          const outcome = await run(json === '' ? [] : [json], input);
          expect(outcome.code).to.be.oneOf([1, 3]);
          expectNothingOf(outcome, [input.trim()]);
        }),
        { numRuns: 20 },
      );
    });
  });

  describe('--at', () => {
    const times: readonly (readonly [at: string, reason: string])[] = [
      ['2026-11-21T12:00:00Z', 'allowed'],
      ['2026-11-21t14:00:00.5+02:00', 'allowed'],
      ['1795262400', 'allowed'],
      ['1795262400.25', 'allowed'],
      ['2026-11-21T13:00:29.9Z', 'allowed'],
      ['2026-11-21T13:00:30Z', 'token_expired'],
      ['2026-11-21T11:59:29Z', 'token_invalid'],
      ['0', 'token_invalid'],
    ];
    for (const [at, reason] of times) {
      it(`answers ${reason} at ${at} for a token valid from 12:00 to 13:00`, async () => {
        const iat = Date.parse('2026-11-21T12:00:00Z') / 1000;
        const timely = await explain.lab.token({ claims: { iat, exp: iat + 3600 } });
        expect(explanationOf(await run(['--json', '--at', at], timely)).reason).to.equal(reason);
      });
    }

    it('is the reference time of the expiry detail', async () => {
      const claims = { iat: 1_795_262_400, exp: 1_795_266_000 };
      const detail = await detailOf({ claims }, 'expiry', '--at', '1795266312');
      expect(detail).to.contain('expired 312 s ago, issued 3912 s ago: check this clock');
    });
  });

  describe('detail of a failed check', () => {
    const seconds = Math.floor(Date.now() / 1000);
    const known = 'roles: owner, member, poster (called "Site Poster")';
    const both = `${known}; that may GET here: owner, member`;
    const teams = '--path /api/subscriptions/teams/acct1/members';
    const dotted = { iss: dottedIssuer, 'https://acct.test/acc': 'acct1' };
    const rows: readonly (readonly [check: string, why: string, parts: TokenParts, args?: string])[] = [
      ['algorithm', 'RS256 or ES256 (alg is "HS256"; algorithms: RS256, ', { header: { alg: 'HS256' } }],
      ['token-type', '(there is no typ; tokenTypes: JWT, at+jwt)', { header: { typ: undefined } }],
      ['signature', 'serve has the old one for up to keys.refreshSeconds (300 s))', { signature: 'A'.repeat(86) }],
      ['audience', `audiences: ${audience}, https://other.test`, { claims: { aud: 'x' } }],
      ['app', 'app is cli; apps: web', { claims: { app: 'cli' } }],
      ['role', `roles are "poster"; ${known}`, { claims: { role: 'poster' } }],
      ['role', `(roles are "guest", "a b"; ${both})`, { claims: { role: ['guest', 'a b'] } }],
      ['role', `(the token has no role that roles names; ${both})`, { claims: { role: [] } }],
      [
        'role',
        'roles are "guest", "member", the method is POST; roles.member: GET, HEAD',
        { claims: { role: ['guest', 'member'] } },
        '--method POST',
      ],
      [
        'role',
        'the token has no claim "realm_access.roles": for a member of an object write the JSON Pointer "/realm_access/roles")',
        { claims: { ...dotted, realm_access: { roles: ['owner'] } } },
      ],
      // A claim name that is a URL is no path with dots.
      ['claims', 'scope from "scope")', { claims: { iss: dottedIssuer, 'realm_access.roles': 'owner' } }],
      [
        'role',
        'roles.member: GET, HEAD; the least change: add member to roles of the route /api/subscriptions/:kind/:account_id/members)',
        { claims: { role: 'member' } },
        teams,
      ],
      [
        'role',
        'roles.poster.methods: POST /api/subscriptions/accounts/:account_id/comments/*; the least change: add "POST /api/subscriptions/accounts/:account_id/items/:any/7" to roles.poster.methods)',
        { claims: { role: 'Site Poster' } },
        '--method POST --path /api/subscriptions/accounts/acct1/items/:x/7',
      ],
      [
        'role',
        'the least change: add "PUT /api/subscriptions/:kind/:account_id/members" to roles.member, and member to roles of the route /api/subscriptions/:kind/:account_id/members)',
        { claims: { role: 'member' } },
        `--method PUT ${teams}`,
      ],
      ['account', 'in the token is acct9, another account is in segment 4 of the path)', { claims: { acc: 'acct9' } }],
      [
        'account',
        'another account is in segment 4 of the path, but for its case: account.case: lower takes it)',
        {},
        '--path /api/subscriptions/accounts/ACCT1',
      ],
      [
        'account-named',
        'another account is in the header x-account-id, the parameter account_id)',
        {},
        '--path /api/subscriptions/accounts/acct1?account_id=acct2 --header x-account-id:acct3',
      ],
      ['path', 'segment 2 is empty', {}, '--path /api//x'],
      ['route', 'segment 2 has "%41")', {}, '--path /api/x%41?%'],
      ['path', 'segment 3 has ";")', {}, '--path /api/%20/a;b'],
      ['path', 'segment 3 has "%2f", an encoded slash)', {}, '--path /api/%20/a%2fb'],
      ['path', 'segment 2 has "%0A", an encoded control character)', {}, '--path /api/%0A'],
      ['path', 'segment 2 has "%")', {}, '--path /api/%zz'],
      ['path', 'its escapes are not UTF-8, or control characters)', {}, '--path /api/%FF'],
      ['path', 'it does not start with /', {}, '--path https://api.test/'],
      ['route', 'routes: /api/subscriptions/accounts/:account_id/*, ', {}, '--path /x'],
      ['route', '(public has /assets/*: Envoy serves GET, HEAD of it without', {}, '--path /assets/a%20b.js'],
      ['issuer', 'https://unreachable.test)', { claims: { iss: 'x' } }],
      ['key', ' ago, kids: "k1", "r1")', { header: { kid: 'nobody' } }],
      ['key', 'docs/keys.md (the keys of https://unreachable.test)', { claims: { iss: 'https://unreachable.test' } }],
      ['claims', 'acc from "acc"', { claims: { acc: undefined } }],
      ['claims', 'outside the grammar: acc is "": ', { claims: { acc: '' } }],
      [
        'claims',
        ': there is no uid: claims of the issuer must name a claim of the token',
        { claims: { uid: undefined } },
      ],
      ['issuer-account', 'with account.dots: true also ., with account.case: lower', { claims: { acc: ['a.test'] } }],
      ['times', 'token.maxLifetimeSeconds is 86400', { claims: { exp: seconds + 1e6 } }],
      ['times', 'token.clockToleranceSeconds is 30', { claims: { nbf: seconds + 999 } }],
    ];
    for (const [check, why, parts, args] of rows) {
      it(`of ${check} says: ${why}`, async () => {
        expect(await detailOf(parts, check, ...(args?.split(' ') ?? []))).to.contain(why);
      });
    }

    it('names the grant that allows, and a key that was replaced under its old kid', async () => {
      const token = await explain.lab.token({ claims: { role: 'Site Poster' } });
      const outcome = await run(['--json', '--method', 'POST', '--path', `${path}/comments/7`], token);
      const passed = new Map(explanationOf(outcome).checks.map(({ name, detail }) => [name, detail]));
      expect(passed.get('role')).to.equal(
        'poster may POST here, by "POST /api/subscriptions/accounts/:account_id/comments/*"',
      );
      expect(passed.get('key')).to.match(/; one that it replaced under its old kid may stay in serve for /);
    });

    it('names all that a verified token lacks, and its lifetime', async () => {
      const claims = { uid: 7, app: undefined, acc: ['a', {}], role: undefined, iat: undefined, exp: seconds + 172800 };
      expect(await detailOf({ claims }, 'claims')).to.match(
        /^uid is a number and allowIntegerClaims is off: uid is 7; also: app is missing or not a string: there is no app; acc has a member that is not a string: acc is a list: \["a", an object\]; role is missing: there is no role; lives longer than maxLifetimeSeconds: it has no iat and expires in 172,[78]\d\d s: /,
      );
    });

    const pointer = 'for a member of an object write the JSON Pointer "/realm_access/roles")';
    const least = 'roles: owner, member; that may GET here: owner, member';
    const bySource: readonly (readonly [
      sources: Record<string, unknown>,
      claims: Record<string, unknown>,
      check: string,
      why: string,
    ])[] = [
      [{ role: 'groups' }, {}, 'role', `${least}; the token has no claim "groups")`],
      [{ role: '/r/{acc}' }, { r: {} }, 'role', `(the token has no role that roles names; ${least})`],
      [{ role: '/r/{acc}' }, { r: { acct1: {} } }, 'role', 'the words of a string (role from "/r/{acc}")'],
      ...['realm_access.roles', '$.realm_access/roles', '#/realm_access/roles', "Realm-Access['roles']", 'roles'].map(
        name => [{ role: name }, { realm_access: { roles: ['x'] } }, 'role', pointer] as const,
      ),
      [{ scope: 'realm_access.roles' }, { realm_access: { roles: [] } }, 'scope', pointer],
      [
        { role: 'a.io.b~c' },
        { 'a.io': { 'b~c': 'x' }, a: { io: 1 } },
        'role',
        pointer.replace('realm_access/roles', 'a.io/b~0c'),
      ],
      [{ role: 'a.b' }, { a: { c: 'x' } }, 'role', 'the token has no claim "a.b")'],
      [{ role: '/o.x/{acc}' }, { o: { x: { acct1: 'y' } } }, 'role', 'write the JSON Pointer "/o/x/{acc}")'],
      [{ role: '/a/io.0/b' }, { 'a.io': [{ b: 'x' }] }, 'role', 'write the JSON Pointer "/a.io/0/b")'],
      [{ aud: 'd.aud' }, { d: { aud: 'x' } }, 'audience', 'write the JSON Pointer "/d/aud")'],
      [
        {},
        { role: 'owner,x' },
        'role',
        `roles are "owner,x", one text: { wordsOf: NAME, by: ',' } reads several of it; ${least})`,
      ],
      [{}, { role: ['owner,x'] }, 'role', `one text: { wordsOf: /role/0, by: ',' } reads several of it; ${least})`],
      ...['owner;x', 'owner, x', 'x|owner'].map(
        role => [{}, { role }, 'role', `"${role}", one text: { wordsOf: NAME } reads single spaces alone, `] as const,
      ),
      [{}, { role: ['a b', 'c d'] }, 'role', `(roles are "a b", "c d"; ${least})`],
      [{ role: { wordsOf: 'role' } }, { role: 'a b' }, 'role', `(roles are "a", "b"; ${least})`],
      [{ role: { wordsOf: 'role' } }, { role: 'a,b' }, 'role', `one text: { wordsOf: NAME, by: ',' } reads`],
      [{}, { scope: ['read x'] }, 'scope', '(scopes are "read x", one text: /scope/0 reads several of it; '],
      [
        {},
        { scope: 'read,x' },
        'scope',
        'one text: the issuer must write single spaces between its words, or a list; ',
      ],
      [{}, { acc: 'a b' }, 'claims', '(one text: { wordsOf: NAME } reads several of it; claims: '],
      [{}, { acc: ['a,b'] }, 'issuer-account', "(one text: { wordsOf: /acc/0, by: ',' } reads several of it; "],
      [{ acc: '$.orgs[*].id' }, { orgs: [{ id: 'x' }] }, 'claims', 'write the JSON Pointer "/orgs/0/id")'],
      [{ role: 'r.role' }, { r: { roles: 'x' } }, 'role', 'write the JSON Pointer "/r/roles")'],
      [{ role: 'roles' }, {}, 'role', 'write the JSON Pointer "/role")'],
      [{ token: [{ cookie: 't' }] }, {}, 'token-origin', '(token.origins: https://app.test)'],
      [{ role: 'https://acct.test/a.b' }, {}, 'role', 'the token has no claim "https://acct.test/a.b")'],
    ];
    for (const [sources, claims, check, why] of bySource) {
      it(`of ${check} from ${JSON.stringify(sources)} for ${JSON.stringify(claims)} says: ${why}`, async () => {
        const { url, jwksUrl } = explain.lab.issuer;
        const { token: from, ...claimSources } = sources;
        const issuers = [{ issuer: url, audiences: [audience], jwksUrl, claims: claimSources }];
        const changes = { ...(from !== undefined && { token: { from, origins: ['https://app.test'] } }), issuers };
        const args = ['--json', ...(from === undefined ? [] : ['--method', 'POST'])];
        const input = await explain.lab.token({ claims });
        const outcome = await runWith({ ...changes, scopes: { read: ['GET'] } }, args, { input });
        expect(explanationOf(outcome).checks.find(({ verdict }) => verdict === 'fail')?.detail).to.contain(why);
      });
    }

    it('claims for no passed check that the request names the account of the token', async () => {
      const { checks } = explanationOf(await run(['--json'], await explain.lab.token({ claims: { acc: 'acct9' } })));
      const passed = checks.filter(({ verdict }) => verdict === 'pass');
      expect(passed.map(({ name }) => name)).to.include('account-named');
      expect(passed.filter(({ detail }) => detail.includes('acct9'))).to.deep.equal([]);
    });

    it('names only the length of a token that is too long', async () => {
      const { checks } = explanationOf(await run(['--json'], 'a'.repeat(5000)));
      expect(checks.find(({ name }) => name === 'token-length')?.detail).to.contain(
        'it has 5000 bytes, token.maxBytes is 4096',
      );
    });
  });
});

// The age of the keys differs between two runs.
function withoutAge(text: string): string {
  return text.replaceAll(/confirmed [^\n;]* ago/g, 'confirmed');
}
