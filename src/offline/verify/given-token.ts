// The token on standard input, as far as the plan needs it. The engine judges it.
import { compilePermissions } from '../../authz/permission.ts';
import { toAccountGrammar } from '../../authz/places/places.ts';
import { toClaimRules } from '../../check/engine.ts';
import type { Config } from '../../config/schema.ts';
import { memberOf } from '../../json/strict-json.ts';
import { parseCompactJws } from '../../token/compact.ts';
import { parseAccounts } from '../../token/identity-claims.ts';
import { createIssuerFinder } from '../../token/issuer-finder.ts';

export interface GivenToken {
  /** Value of the Authorization header. */
  readonly authorization: string;
  /** Those that it claims and its issuer may speak for. Its signature is not verified. */
  readonly accounts: readonly string[];
}

export function readGivenToken(authorization: string, config: Config): GivenToken {
  return { authorization, accounts: accountsOf(authorization.replace(/^bearer +/i, ''), config) };
}

function accountsOf(token: string, { issuers, account, roles }: Config): readonly string[] {
  const jws = parseCompactJws(token);
  if (jws.kind === 'refusal') return [];
  const grammar = toAccountGrammar(account);
  const tables = { roles: compilePermissions(roles), scopes: undefined };
  const finder = createIssuerFinder(
    issuers.map(issuer => ({ rules: toClaimRules(issuer, tables, grammar) })),
    grammar,
  );
  const rules = finder.get(String(memberOf(jws.payload, 'iss')))?.rules;
  const accounts = rules === undefined ? [] : parseAccounts(jws.payload, rules);
  if (typeof accounts === 'string') return [accounts];
  return 'kind' in accounts ? [] : [...accounts];
}
