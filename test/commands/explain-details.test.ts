// The detail that explain gives for each failed check, and the time of --at.
import { expect } from 'chai';
import { writeFixture } from '../../lab/config-file.ts';
import { serviceConfig } from '../../lab/service.ts';
import { audience, type TokenParts } from '../../lab/token.ts';
import { dottedIssuer, explanationOf, runExplain } from '../offline/explain/explain-lab.ts';
import { fullConfig, path, useExplainLab } from './explain-config.ts';

describe('details of explain', () => {
  const explain = useExplainLab();
  const { run, detailOf } = explain;

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
    const rows: readonly (readonly [
      name: string,
      check: string,
      parts: TokenParts,
      args: readonly string[],
      why: string,
    ])[] = [
      [
        'the accepted audiences',
        'audience',
        { claims: { aud: 'x' } },
        [],
        `audiences: ${audience}, https://other.test`,
      ],
      ['the allowed applications', 'app', { claims: { app: 'cli' } }, [], 'app is cli; apps: web'],
      ['the known roles', 'role', { claims: { role: 'guest' } }, [], 'roles are "guest"; roles: owner, member, poster'],
      [
        'the methods of the role',
        'role',
        { claims: { role: 'member' } },
        ['--method', 'POST'],
        'roles are "member", the method is POST; roles.member: GET, HEAD',
      ],
      [
        'all roles of the token',
        'role',
        { claims: { role: ['guest', 'a b'] } },
        [],
        '(roles are "guest", "a b"; roles: owner, member, poster; that may GET here: owner, member)',
      ],
      [
        'no role of an empty list',
        'role',
        { claims: { role: [] } },
        [],
        '(the token has no role that roles names; roles: owner, member, poster; that may GET here: owner, member)',
      ],
      [
        'the methods of each of several roles',
        'role',
        { claims: { role: ['guest', 'member'] } },
        ['--method', 'POST'],
        'roles are "guest", "member", the method is POST; roles.member: GET, HEAD',
      ],
      [
        'the JSON Pointer for a claim name with dots',
        'role',
        { claims: { iss: dottedIssuer, 'https://acct.test/acc': 'acct1', realm_access: { roles: ['owner'] } } },
        [],
        'the token has no claim "realm_access.roles": for a member of an object write the JSON Pointer "/realm_access/roles")',
      ],
      [
        'no JSON Pointer for a claim name that is a URL',
        'claims',
        { claims: { iss: dottedIssuer, 'realm_access.roles': 'owner' } },
        [],
        'scope from "scope")',
      ],
      [
        'the roles of a route',
        'role',
        { claims: { role: 'member' } },
        ['--path', '/api/subscriptions/teams/acct1/members'],
        'roles.member: GET, HEAD; the least change: add member to roles of the route /api/subscriptions/:kind/:account_id/members)',
      ],
      [
        'the least grant that a role lacks',
        'role',
        { claims: { role: 'Site Poster' } },
        ['--method', 'POST', '--path', '/api/subscriptions/accounts/acct1/items/:x/7'],
        'roles.poster.methods: POST /api/subscriptions/accounts/:account_id/comments/*; the least change: add "POST /api/subscriptions/accounts/:account_id/items/:any/7" to roles.poster.methods)',
      ],
      [
        'the grant and the route that a role lacks',
        'role',
        { claims: { role: 'member' } },
        ['--method', 'PUT', '--path', '/api/subscriptions/teams/acct1/members'],
        'the least change: add "PUT /api/subscriptions/:kind/:account_id/members" to roles.member, and member to roles of the route /api/subscriptions/:kind/:account_id/members)',
      ],
      [
        'the path segment of the other account',
        'account',
        { claims: { acc: 'acct9' } },
        [],
        'acc in the token is acct9, another account is in segment 4 of the path)',
      ],
      [
        'every place of another account',
        'account-named',
        {},
        ['--path', '/api/subscriptions/accounts/acct1?account_id=acct2', '--header', 'x-account-id: acct3'],
        'another account is in the header x-account-id, the parameter account_id)',
      ],
      ['the empty segment', 'path', {}, ['--path', '/api//x'], 'segment 2 is empty'],
      ['the escape that this route does not permit', 'route', {}, ['--path', '/api/x%41?%'], 'segment 2 has "%41")'],
      ['the invalid character', 'path', {}, ['--path', '/api/%20/a;b'], 'segment 3 has ";")'],
      ['the encoded slash', 'path', {}, ['--path', '/api/%20/a%2fb'], 'segment 3 has "%2f", an encoded slash)'],
      [
        'the control character',
        'path',
        {},
        ['--path', '/api/%0A'],
        'segment 2 has "%0A", an encoded control character)',
      ],
      ['the broken escape', 'path', {}, ['--path', '/api/%zz'], 'segment 2 has "%")'],
      [
        'bytes that are no UTF-8',
        'path',
        {},
        ['--path', '/api/%FF'],
        'its escapes are not UTF-8, or control characters)',
      ],
      ['the required start of a path', 'path', {}, ['--path', 'https://api.test/'], 'it does not start with /'],
      ['the routes', 'route', {}, ['--path', '/x'], 'routes: /api/subscriptions/accounts/:account_id/*, '],
      ['the issuers', 'issuer', { claims: { iss: 'x' } }, [], 'https://unreachable.test)'],
      ['the known kids', 'key', { header: { kid: 'nobody' } }, [], ' ago, kids: "k1", "r1")'],
      ['the missing claim', 'claims', { claims: { acc: undefined } }, [], 'acc from "acc"'],
      ['the maximum lifetime', 'times', { claims: { exp: seconds + 1e6 } }, [], 'token.maxLifetimeSeconds is 86400'],
      ['the clock tolerance', 'times', { claims: { nbf: seconds + 999 } }, [], 'token.clockToleranceSeconds is 30'],
    ];
    for (const [name, check, parts, args, why] of rows) {
      it(`names ${name}`, async () => {
        expect(await detailOf(parts, check, ...args)).to.contain(why);
      });
    }

    it('names the grant that allows', async () => {
      const token = await explain.lab.token({ claims: { role: 'Site Poster' } });
      const outcome = await run(['--json', '--method', 'POST', '--path', `${path}/comments/7`], token);
      expect(explanationOf(outcome).checks.find(({ name }) => name === 'role')).to.include({
        verdict: 'pass',
        detail: 'poster may POST here, by "POST /api/subscriptions/accounts/:account_id/comments/*"',
      });
    });

    const byAccount: readonly (readonly [roles: unknown, why: string])[] = [
      [undefined, '(the token has no role that roles names; roles: owner, member; that may GET here: owner, member)'],
      [{}, ', see docs/configuration.md (role from "/r/{acc}")'],
    ];
    for (const [roles, why] of byAccount) {
      it(`names what is wrong with the roles ${JSON.stringify(roles)} of the addressed account`, async () => {
        const { url, jwksUrl } = explain.lab.issuer;
        const issuers = [{ issuer: url, audiences: [audience], jwksUrl, claims: { role: '/r/{acc}' } }];
        const config = serviceConfig(explain.lab.issuer, fullConfig({ issuers }));
        const args = ['--config', writeFixture('explain-by-account.json', config), '--path', path, '--json'];
        const outcome = await runExplain(args, { input: await explain.lab.token({ claims: { r: { acct1: roles } } }) });
        const { detail = '' } = explanationOf(outcome).checks.find(({ name }) => name === 'role') ?? {};
        expect(detail.slice(-why.length)).to.equal(why);
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
