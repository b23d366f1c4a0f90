// Issuers of one account each: `{acc}` in `issuer` stands for the account, in a key URL for a key set of its own.
import type * as z from 'zod';
import { accountInIssuer, issuerPlaceholder, overlap, parseIssuerTemplate } from '../authz/issuer-template.ts';
import type { AccountGrammar } from '../authz/principal.ts';
import { itemsOf, memberOf } from '../json/strict-json.ts';
import { report } from './value-schemas.ts';

const keyUrls = ['jwksUrl', 'discoveryUrl'] as const;
const maxKeySets = 200;
const placeRule = `must have ${issuerPlaceholder} at most once: as a whole segment of the path, or as the whole first label of the host`;

/** The rules of one issuer. */
export function requireSoundTemplate(issuer: unknown, context: z.RefinementCtx): void {
  const templates = ['issuer', ...keyUrls].flatMap(key => {
    const text = memberOf(issuer, key);
    const template = typeof text === 'string' ? parseIssuerTemplate(text) : undefined;
    if (template === 'misplaced') report(context, placeRule, [key]);
    return template === undefined ? [] : [key];
  });
  const ownUrl = keyUrls.find(key => templates.includes(key));
  if (!templates.includes('issuer')) {
    if (ownUrl !== undefined) report(context, `must not have ${issuerPlaceholder}, which issuer has not`, [ownUrl]);
    return;
  }
  if (memberOf(memberOf(issuer, 'claims'), 'acc') !== undefined)
    report(context, `must not be set: the account stands in issuer, as ${issuerPlaceholder}`, ['claims', 'acc']);
  if (memberOf(issuer, 'discoveryUrl') !== undefined && ownUrl === undefined) {
    const remedy = `metadata names one issuer: write ${issuerPlaceholder} here too, or name a key set that all share by jwksUrl`;
    report(context, remedy, ['discoveryUrl']);
  }
  if (ownUrl === undefined) return;
  const accounts = itemsOf(memberOf(issuer, 'accounts') ?? ['*']);
  if (accounts.length > maxKeySets || accounts.some(name => typeof name === 'string' && /[!*]/.test(name)))
    report(
      context,
      `must be at most ${maxKeySets} names without "*" and "!": each has the key set of its own ${ownUrl}`,
      ['accounts'],
    );
}

/** The rules of several: no token may be of two issuers. */
export function refuseOverlappingIssuers(config: unknown, context: z.RefinementCtx): void {
  const grammar = { dots: memberOf(memberOf(config, 'account'), 'dots') === true, lower: false };
  const issuers = itemsOf(memberOf(config, 'issuers')).map(each => memberOf(each, 'issuer'));
  const isTemplate = (text: string): boolean => text.includes(issuerPlaceholder);
  for (const [i, issuer] of issuers.entries()) {
    const before = issuers.findIndex(
      (other, j) =>
        j !== i &&
        typeof issuer === 'string' &&
        typeof other === 'string' &&
        issuer !== other &&
        // Reported once: at the literal one, or at the later of two templates.
        isTemplate(other) &&
        (!isTemplate(issuer) || j < i) &&
        overlap(issuer, other, grammar),
    );
    if (before !== -1)
      report(context, `must not fit issuers[${before}].issuer too: no token may be of two issuers`, [
        'issuers',
        i,
        'issuer',
      ]);
  }
}

function hasOwnKeySets(issuer: unknown): boolean {
  return keyUrls.some(key => String(memberOf(issuer, key) ?? '').includes(issuerPlaceholder));
}

interface IssuerWithKeys {
  readonly issuer: string;
  readonly accounts: readonly string[];
  readonly jwksUrl?: string;
  readonly discoveryUrl?: string;
}

/** With an issuer of its own for each account that has a key set of its own. A name that is no account has none. */
export function expandIssuers<Issuer extends IssuerWithKeys>(
  issuers: readonly Issuer[],
  grammar: AccountGrammar,
): readonly Issuer[] {
  return issuers.flatMap(issuer => {
    const template = parseIssuerTemplate(issuer.issuer);
    if (!hasOwnKeySets(issuer) || template === undefined || template === 'misplaced') return [issuer];
    const { jwksUrl, discoveryUrl } = issuer;
    return issuer.accounts.flatMap(name => {
      const filled = (text: string): string => text.replace(issuerPlaceholder, name);
      const iss = filled(issuer.issuer);
      if (accountInIssuer(template, iss, grammar) === undefined) return [];
      const own = { ...issuer, issuer: iss, accounts: [name] };
      return [
        {
          ...own,
          ...(jwksUrl && { jwksUrl: filled(jwksUrl) }),
          ...(discoveryUrl && { discoveryUrl: filled(discoveryUrl) }),
        },
      ];
    });
  });
}
