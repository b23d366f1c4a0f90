// The token on standard input, as far as the plan needs it. The engine judges it.
import { compileIssuerAccounts, mayClaim } from '../../authz/issuer-accounts.ts';
import { toAccountGrammar } from '../../authz/places/places.ts';
import { isAccount } from '../../authz/principal.ts';
import type { Config } from '../../config/schema.ts';
import { memberOf } from '../../json/strict-json.ts';
import { compileSource, readSource } from '../../token/claim-source.ts';
import { parseCompactJws } from '../../token/compact.ts';

export interface GivenToken {
  /** Value of the Authorization header. */
  readonly authorization: string;
  /** Those that it claims and its issuer may speak for. Its signature is not verified. */
  readonly accounts: readonly string[];
}

export function readGivenToken(authorization: string, config: Config): GivenToken {
  return { authorization, accounts: accountsOf(authorization.replace(/^bearer +/i, ''), config) };
}

function accountsOf(token: string, { issuers, account }: Config): readonly string[] {
  const jws = parseCompactJws(token);
  if (jws.kind === 'refusal') return [];
  const issuer = issuers.find(each => each.issuer === memberOf(jws.payload, 'iss'));
  if (issuer === undefined) return [];
  const value = readSource(jws.payload, compileSource(issuer.claims.acc, issuer.allowIntegerClaims));
  if (value === undefined || (typeof value === 'object' && 'problem' in value)) return [];
  const owned = compileIssuerAccounts(issuer.accounts);
  const claimed = typeof value === 'string' ? [value] : value;
  const grammar = toAccountGrammar(account);
  return claimed.filter(each => isAccount(each, grammar) && mayClaim(owned, each));
}
