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

/** The rules of several: no token may be of two issuers, and an account with keys of its own must be one. */
export function refuseOverlappingIssuers(config: unknown, context: z.RefinementCtx): void {
  const account = memberOf(config, 'account');
  const grammar = { dots: memberOf(account, 'dots') === true, lower: memberOf(account, 'case') === 'lower' };
  const entries = itemsOf(memberOf(config, 'issuers'));
  for (const [i, entry] of entries.entries()) requireAccounts(entry, ['issuers', i, 'accounts'], grammar, context);
  const issuers = entries.map(each => memberOf(each, 'issuer'));
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

function requireAccounts(
  issuer: unknown,
  path: readonly PropertyKey[],
  grammar: AccountGrammar,
  context: z.RefinementCtx,
): void {
  const template = parseIssuerTemplate(String(memberOf(issuer, 'issuer')));
  if (!hasOwnKeySets(issuer) || template === undefined || template === 'misplaced') return;
  for (const [j, name] of itemsOf(memberOf(issuer, 'accounts')).entries()) {
    if (typeof name !== 'string' || /[!*]/.test(name)) continue;
    if (accountInIssuer(template, template.before + name + template.after, grammar) === undefined)
      report(context, `must be an account that can stand in issuer, as ${issuerPlaceholder}: ${accountRule}`, [
        ...path,
        j,
      ]);
  }
}

const accountRule =
  'of A-Z a-z 0-9 _ ~ -, with account.dots: true also ., with account.case: lower without A-Z, and in a host of a-z 0-9 - alone';

function hasOwnKeySets(issuer: unknown): boolean {
  return keyUrls.some(key => String(memberOf(issuer, key) ?? '').includes(issuerPlaceholder));
}

interface IssuerWithKeys {
  readonly issuer: string;
  readonly accounts: readonly string[];
  readonly jwksUrl?: string;
  readonly discoveryUrl?: string;
}

/** With an issuer of its own for each account that has a key set of its own. */
export function expandIssuers<Issuer extends IssuerWithKeys>(issuers: readonly Issuer[]): readonly Issuer[] {
  return issuers.flatMap(issuer => {
    if (!hasOwnKeySets(issuer)) return [issuer];
    const { jwksUrl, discoveryUrl } = issuer;
    return issuer.accounts.map(name => {
      const filled = (text: string): string => text.replace(issuerPlaceholder, name);
      return {
        ...issuer,
        issuer: filled(issuer.issuer),
        accounts: [name],
        ...(jwksUrl && { jwksUrl: filled(jwksUrl) }),
        ...(discoveryUrl && { discoveryUrl: filled(discoveryUrl) }),
      };
    });
  });
}
