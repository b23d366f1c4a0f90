// The tokens that `verify` sends: the one on standard input, which the engine judges, and one with a false signature for each issuer.
import { randomBytes } from 'node:crypto';
import { someIssuer } from '../../authz/issuer-template.ts';
import { compilePermissions } from '../../authz/permission.ts';
import { toAccountGrammar } from '../../authz/places/places.ts';
import { toClaimRules } from '../../check/engine.ts';
import type { Config, IssuerConfig } from '../../config/schema.ts';
import { memberOf } from '../../json/strict-json.ts';
import { parseCompactJws } from '../../token/compact.ts';
import { parseAccounts } from '../../token/identity-claims.ts';
import { createIssuerFinder } from '../../token/verifier.ts';

export interface GivenToken {
  /** Value of the Authorization header. */
  readonly authorization: string;
  /** Those that it claims and its issuer may speak for. Its signature is not verified. */
  readonly accounts: readonly string[];
}

export function readGivenToken(authorization: string, { issuers, account, roles }: Config): GivenToken {
  const jws = parseCompactJws(authorization.replace(/^bearer +/i, ''));
  if (jws.kind === 'refusal') return { authorization, accounts: [] };
  const grammar = toAccountGrammar(account);
  const tables = { roles: compilePermissions(roles), scopes: undefined };
  const candidates = issuers.map(issuer => ({ rules: toClaimRules(issuer, tables, grammar) }));
  const found = createIssuerFinder(candidates, grammar).get(String(memberOf(jws.payload, 'iss')));
  const accounts = found === undefined ? [] : parseAccounts(jws.payload, found.rules);
  if (typeof accounts === 'string') return { authorization, accounts: [accounts] };
  return { authorization, accounts: 'kind' in accounts ? [] : [...accounts] };
}

/** Right in all that can be seen without the issuer's private key. `kid` is one of its current set; `now` is in seconds since the epoch. */
export function falseToken(
  { issuer, audiences, algorithms, tokenTypes, accounts }: IssuerConfig,
  kid: string,
  now: number,
): string {
  const [typ = ''] = tokenTypes;
  const iat = Math.floor(now);
  const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const header = encode({ alg: algorithms[0], kid, ...(typ !== '' && { typ }) });
  const payload = encode({ iss: someIssuer(issuer, accounts), aud: audiences[0], iat, exp: iat + 60 });
  // As long as one of RS256, and of random bytes, so no key verifies it.
  return `${header}.${payload}.${randomBytes(256).toString('base64url')}`;
}
