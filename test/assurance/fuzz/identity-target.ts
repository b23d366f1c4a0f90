// Claims of any shape under every form of claim source: what is read from them stays inside the grammars, bounds and tables.

import { claimRules } from '../../../lab/token.ts';
import { mayClaim } from '../../../src/authz/issuer-accounts.ts';
import { type Claimed, type ClaimedByAccount, isAccount, isIdentityField } from '../../../src/authz/principal.ts';
import type { Refusal } from '../../../src/authz/refusal.ts';
import { parseStrictJson } from '../../../src/json/strict-json.ts';
import { type IdentityRules, parseIdentity, parseSignedIdentity } from '../../../src/token/identity-claims.ts';
import { inJson } from './shapes.ts';
import { must, type Target, words } from './target.ts';

const tables = { roles: ['owner', '10', '9'], scopes: ['api', 'orders:read'], accounts: ['acct*', '7'] };

const ruleSets: readonly IdentityRules[] = [
  claimRules({ ...tables, allowIntegerClaims: true }),
  claimRules({ ...tables, claims: { acc: { keysOf: '/orgs' }, role: '/orgs/{acc}/roles', actor: '/act/sub' } }),
  claimRules({ ...tables, claims: { role: { keysOf: 'grants', having: '{acc}' }, scope: '/orgs/{acc}/roles' } }),
  claimRules({ ...tables, dots: true, claims: { acc: { keysOf: 'orgs' }, role: { wordsOf: 'scope' } } }),
];

const base = { uid: 'u', app: 'web', acc: ['acct1', 'acct2', 'other', 'a b'], role: 'owner', scope: 'openid api' };
const payloads: readonly object[] = [
  base,
  { ...base, acc: 7, role: 10 },
  { ...base, orgs: { acct1: { roles: ['owner', 'x'] }, 7: { roles: '9' }, other: null }, act: { sub: 'agent' } },
  { ...base, grants: { owner: { acct1: 'acct.test' }, 10: { acct2: 1 }, x: [] } },
  { ...base, acc: 'acct1', orgs: { 'acct.com': {} }, scope: ['api', 'orders:read'] },
];

export function identityTarget(): Target {
  return {
    name: 'identity',
    shapes: [inJson],
    seeds: payloads.map(payload => Buffer.from(JSON.stringify(payload))),
    dictionary: words(
      ...['"acct1"', '"acct2":{}', '"roles":', '"orgs":', '"grants":', '"scope":', '"act":{"sub":', '"__proto__":'],
      ...['[]', '{}', 'null', '-0', '1e400', '9007199254740993', '"10"', '" "', '"a  b"', '"\\u0000"', '"\\ud800"'],
    ),
    maxBytes: 8192,
    shortRuns: 3000,
    run(input) {
      const parsed = parseStrictJson(input);
      if (parsed.kind !== 'value') return Promise.resolve('not JSON');
      return Promise.resolve(
        ruleSets.map(rules => judge(parsed.value, rules)).find(each => each !== 'refused') ?? 'refused',
      );
    },
  };
}

function judge(payload: unknown, rules: IdentityRules): string {
  const signed = parseSignedIdentity(payload, rules);
  for (const field of [signed.uid, signed.app, signed.actor])
    must(field === undefined || isIdentityField(field), 'a field outside the grammar');
  const identity = parseIdentity(payload, rules);
  if ('kind' in identity) {
    must(identity.reason === 'token_invalid', `refused as ${identity.reason}`);
    return 'refused';
  }
  const { uid, app, actor, accounts, role, scope } = identity;
  must(signed.uid === uid && signed.app === app && signed.actor === actor, 'a caller that the log does not know');
  const names = typeof accounts === 'string' ? [accounts] : [...accounts];
  must(typeof accounts === 'string' || names.length !== 1, 'a set of one account');
  must(names.length <= 1000, 'more than 1,000 accounts');
  for (const name of names) {
    must(isAccount(name, rules.dots), 'an account outside the grammar');
    must(mayClaim(rules.accounts, name), 'an account that the issuer may not speak for');
  }
  for (const [claimed, table] of [
    [role, rules.roles],
    [scope, rules.scopes],
  ] as const) {
    if (typeof claimed === 'object' && 'kind' in claimed) mustBeOf(claimed, names);
    for (const each of namesOf(claimed)) must(table?.has(each) === true, 'a name that is not in the table');
  }
  return names.length > 1 ? 'several accounts' : 'an identity';
}

function mustBeOf({ claimed }: ClaimedByAccount, names: readonly string[]): void {
  must(claimed.size === names.length && names.every(name => claimed.has(name as never)), 'claims of another account');
}

// One name that stands alone is kept for the log, whatever it is.
function namesOf(claimed: Claimed | ClaimedByAccount | Refusal): readonly string[] {
  if (typeof claimed === 'string') return [];
  if (!('kind' in claimed)) return claimed;
  return claimed.kind === 'refusal' ? [] : [...claimed.claimed.values()].flatMap(namesOf);
}
