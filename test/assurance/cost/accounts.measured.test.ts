// The cost of a token with as many accounts, roles and scopes as fit, new, and of hostile hosts.
import { expect } from 'chai';
import { checkRequest } from '../../../lab/check-request.ts';
import { signingKey } from '../../../lab/signing-key.ts';
import { token } from '../../../lab/token.ts';
import { authorizationService } from '../../../src/envoy/protocol.ts';
import { createWholeCheck, statusOf, type WholeCheck } from '../../support/whole-check.ts';
import { allowedRequestMicroseconds, maxMultiple, microsecondsOf } from './processor-time.ts';

const maxBytes = 65_536;
const names = Array.from({ length: 1000 }, (_, i) => `n-${i}`);
const roleNames = Array.from({ length: 100 }, (_, i) => `r${i}`);
const objectOf = (keys: readonly string[], value: unknown): unknown =>
  Object.fromEntries(keys.map(key => [key, value]));

interface Case {
  readonly name: string;
  /** Sources beside the default ones. */
  readonly sources?: Readonly<Record<string, unknown>>;
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly host?: string;
  readonly status: number;
}

const cases: readonly Case[] = [
  { name: '1,000 accounts in a list', claims: { acc: [...names.slice(1), 'acct1'] }, status: 0 },
  { name: '1,001 accounts in a list', claims: { acc: [...names, 'acct1'] }, status: 16 },
  { name: 'a list of one account 8,000 times', claims: { acc: Array.from({ length: 8000 }, () => 'n') }, status: 7 },
  { name: '1,000 accounts outside the grammar', claims: { acc: names.map(each => `${each} \u212a`) }, status: 7 },
  {
    name: '1,000 accounts as keys, each with roles of its own',
    sources: { acc: { keysOf: '/o' }, role: '/o/{acc}/r' },
    claims: { o: objectOf([...names.slice(1), 'acct1'], { r: ['x', 'r0', 'r9'] }), acc: undefined, role: undefined },
    status: 0,
  },
  {
    name: '1,000 accounts as keys, each with words of its own for roles and scopes',
    sources: { acc: { keysOf: '/o' }, role: { wordsOf: '/o/{acc}/r' }, scope: '/o/{acc}/r' },
    claims: { o: objectOf([...names.slice(1), 'acct1'], { r: 'r9 r5 r0 s0' }), acc: undefined, role: undefined },
    status: 0,
  },
  {
    name: '100 roles, each with many accounts, beside 50 accounts',
    sources: { role: { keysOf: '/p', having: '{acc}' } },
    claims: {
      acc: [...names.slice(0, 49), 'acct1'],
      role: undefined,
      p: objectOf(roleNames, objectOf([...names.slice(0, 49), 'acct1'], 1)),
    },
    status: 0,
  },
  {
    name: '1,000 accounts beside 100 roles',
    sources: { role: { keysOf: '/p', having: '{acc}' } },
    claims: { acc: [...names.slice(1), 'acct1'], role: undefined, p: objectOf(roleNames, objectOf(['acct1', 'n'], 1)) },
    status: 0,
  },
  { name: 'a host of many labels', host: `${'a.'.repeat(60_000)}api.test`, status: 3 },
  { name: 'a host of digits after a colon', host: `acct1.api.test:${'1'.repeat(60_000)}`, status: 3 },
  { name: 'a host of colons', host: `${':1'.repeat(60_000)}x`, status: 3 },
  { name: 'a host of one long label', host: `${'a-'.repeat(60_000)}.api.test`, status: 3 },
  { name: 'a host of letters that grow in lower case', host: `${'\u0130'.repeat(30_000)}.api.test`, status: 3 },
];

describe('the cost of accounts, roles and hosts', () => {
  let unit: number;
  before(async () => {
    unit = await allowedRequestMicroseconds(await checkOf({ name: 'unit', status: 0 }));
  });

  for (const each of cases) {
    it(`is at most ${maxMultiple} allowed requests for ${each.name}`, async () => {
      const check = await checkOf(each);
      const message = await messageOf(each);
      expect(statusOf(await check(message))).to.equal(each.status);
      const [microseconds = Number.NaN] = await microsecondsOf([() => check(message)], 8);
      expect(microseconds / unit).to.be.at.most(maxMultiple);
    });
  }
});

function checkOf({ sources, host }: Case): Promise<WholeCheck> {
  const settings = {
    token: { maxBytes },
    routes: [{ path: '/api/subscriptions/:account_id' }],
    ...(host === undefined ? {} : { account: { hosts: ['api.test', ':account_id.api.test'] } }),
    roles: { owner: ['*'], ...Object.fromEntries(roleNames.map(name => [name, ['*']])) },
    ...(sources !== undefined && 'scope' in sources ? { scopes: { s0: ['*'] } } : {}),
    cache: { maxTokens: 0 },
  };
  return createWholeCheck(settings, { claims: { ...sources } });
}

async function messageOf({ claims, host }: Case): Promise<Buffer> {
  const key = await signingKey('k1', 'ES256');
  const text = await token({ key, ...(claims === undefined ? {} : { claims }) });
  expect(text.length).to.be.at.most(maxBytes);
  const request = checkRequest({
    headers: { authorization: `Bearer ${text}` },
    ...(host === undefined ? {} : { http: { host } }),
  });
  return Buffer.from(authorizationService.Check.requestSerialize(request));
}
