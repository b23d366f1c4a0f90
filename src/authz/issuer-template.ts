// Issuers and key URLs with `{acc}`: one for each account, whose name stands between two literal texts.
import { isAccountLabel } from './places/host-place.ts';
import { type Account, type AccountGrammar, isAccount } from './principal.ts';

export interface IssuerTemplate {
  readonly before: string;
  readonly after: string;
  /** The account is the first label of the host, else a segment of the path. */
  readonly isLabel: boolean;
}

/** In an issuer or a URL, what stands for the account. */
export const issuerPlaceholder = '{acc}';

// A whole first label of the host with a literal label after it, or a whole segment of the path.
const labelTemplate = /^[a-z][a-z0-9+.-]*:\/\/\{acc\}\.[^/?#@:.]/i;
const segmentTemplate = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]+(?:\/[^?#]*)?\/\{acc\}(?:[/?#]|$)/i;

/** Undefined without `{acc}`; a problem where it stands more than once or in another place. */
export function parseIssuerTemplate(text: string): IssuerTemplate | undefined | 'misplaced' {
  const [before = '', after, ...more] = text.split(issuerPlaceholder);
  if (after === undefined) return undefined;
  const isLabel = labelTemplate.test(text);
  return more.length === 0 && (isLabel || segmentTemplate.test(text)) ? { before, after, isLabel } : 'misplaced';
}

/** The account in the place of `{acc}`, if the text fits, byte for byte. */
export function accountInIssuer(
  { before, after, isLabel }: IssuerTemplate,
  text: string,
  grammar: AccountGrammar,
): Account | undefined {
  const end = text.length - after.length;
  if (end < before.length || !text.startsWith(before) || !text.endsWith(after)) return undefined;
  const name = text.slice(before.length, end);
  return isAccount(name, grammar) && (!isLabel || isAccountLabel(name)) ? name : undefined;
}

/** The issuer of one of these accounts: the first that is a name. */
export function someIssuer(issuer: string, accounts: readonly string[]): string {
  return issuer.replace(issuerPlaceholder, accounts.find(entry => /^[^!*]*$/.test(entry)) ?? 'account');
}

/** Whether some text fits both. Each may have `{acc}` or none. */
export function overlap(one: string, other: string, grammar: AccountGrammar): boolean {
  const [template, otherTemplate] = [parseIssuerTemplate(one), parseIssuerTemplate(other)];
  if (template === 'misplaced' || otherTemplate === 'misplaced') return false;
  if (template === undefined || otherTemplate === undefined) {
    const [found, text] = template === undefined ? [otherTemplate, one] : [template, other];
    return found === undefined ? one === other : accountInIssuer(found, text, grammar) !== undefined;
  }
  const both = [template, otherTemplate].sort((first, second) => first.before.length - second.before.length);
  const [earlier = template, later = otherTemplate] = both;
  // Where the later account stands behind, the earlier one is literal text of the other: no account has / ? or #, and no label a dot.
  const rest = later.before.slice(earlier.before.length);
  const [account] = (earlier.isLabel ? /^[^/?#.]+/ : /^[^/?#]+/).exec(rest) ?? ['account'];
  const text = earlier.before + account + earlier.after;
  return both.every(each => accountInIssuer(each, text, grammar) !== undefined);
}
