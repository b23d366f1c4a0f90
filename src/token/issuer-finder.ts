// Finds the issuer of a token by `iss`: one of that name, or one whose template it fits.
import { accountInIssuer, parseIssuerTemplate } from '../authz/issuer-template.ts';
import type { AccountGrammar } from '../authz/principal.ts';
import type { ClaimRules } from './claims.ts';

/** `iss` may be unverified: nothing is made, kept or fetched for it. */
export interface IssuerFinder<Issuer> {
  get(iss: string): Issuer | undefined;
}

/** No `iss` fits two of them, which the validation of a configuration ensures. */
export function createIssuerFinder<Issuer extends { readonly rules: ClaimRules }>(
  issuers: readonly Issuer[],
  grammar: AccountGrammar,
): IssuerFinder<Issuer> {
  const byName = new Map(issuers.map(issuer => [issuer.rules.issuer, issuer]));
  const templates = issuers.flatMap(issuer => {
    const template = parseIssuerTemplate(issuer.rules.issuer);
    return template === undefined || template === 'misplaced' ? [] : [{ issuer, template }];
  });
  for (const { issuer } of templates) byName.delete(issuer.rules.issuer);
  return {
    get(iss) {
      const named = byName.get(iss);
      if (named !== undefined) return named;
      for (const { issuer, template } of templates) {
        const account = accountInIssuer(template, iss, grammar);
        if (account !== undefined) return { ...issuer, rules: { ...issuer.rules, issuer: iss, account } };
      }
      return undefined;
    },
  };
}
