// Parses the identity of a token from its claims: user, application, accounts, roles, scopes, actor and what is forwarded.
import type { DetailOf } from '../authz/checks.ts';
import { type IssuerAccounts, mayClaim } from '../authz/issuer-accounts.ts';
import { namesIn, type Permissions } from '../authz/permission.ts';
import {
  type Account,
  type AccountGrammar,
  accountProblem,
  type Claimed,
  type ClaimedByAccount,
  type Identity,
  isAccount,
  isIdentityField,
  type SignedIdentity,
} from '../authz/principal.ts';
import { type Refusal, refusal } from '../authz/refusal.ts';
import { isJsonObject, memberOf, toPointer, valueAt } from '../json/strict-json.ts';
import { listWords, printable, quotedPrintable } from '../text/printable.ts';
import {
  type ClaimSource,
  type CompiledSource,
  compileSource,
  type FieldSource,
  presentSource,
  readSource,
  readSourceByAccount,
  type SourceProblem,
  type SourceValue,
  textsOf,
} from './claim-source.ts';

/** `claims` of an issuer, as the configuration writes them. */
export interface ClaimSources {
  readonly aud: string;
  readonly uid: FieldSource;
  readonly app: FieldSource;
  /** Undefined: the account stands in the issuer. */
  readonly acc?: ClaimSource | undefined;
  readonly role: ClaimSource;
  readonly scope: string;
  readonly actor?: string;
}

/** Compiled for `parseIdentity`. */
export interface IdentityRules {
  readonly issuer: string;
  readonly uid: readonly CompiledSource[];
  readonly app: readonly CompiledSource[];
  readonly actor: CompiledSource | undefined;
  readonly forwarded: readonly CompiledSource[];
  readonly acc: CompiledSource | undefined;
  /** That of an issuer of one account. */
  readonly account: string | undefined;
  readonly role: CompiledSource;
  readonly scope: CompiledSource;
  /** Names of other roles and scopes are not kept. */
  readonly roles: Permissions;
  /** Undefined: scopes are not read. */
  readonly scopes: Permissions | undefined;
  readonly accounts: IssuerAccounts;
  readonly grammar: AccountGrammar;
}

/** Throws on an invalid source, which the validation of a configuration reports. */
export function compileClaimSources({ aud, uid, app, acc, role, scope, actor }: ClaimSources, allowsIntegers: boolean) {
  return {
    aud: compileSource(aud, false),
    uid: textsOf(uid).map(text => compileSource(text, allowsIntegers)),
    app: textsOf(app).map(text => compileSource(text, allowsIntegers)),
    acc: acc === undefined ? undefined : compileSource(acc, allowsIntegers),
    role: compileSource(role, allowsIntegers),
    scope: compileSource(scope, allowsIntegers, 'words or list'),
    actor: actor === undefined ? undefined : compileSource(actor, allowsIntegers),
  };
}

/** Reads every claim once. What depends on the account that a request addresses is kept for each account of the token. */
export function parseIdentity(payload: unknown, rules: IdentityRules): Identity | Refusal {
  const uid = parseField(payload, rules.uid, 'uid');
  if (typeof uid !== 'string') return uid;
  const app = parseField(payload, rules.app, 'app');
  if (typeof app !== 'string') return app;
  const accounts = parseAccounts(payload, rules);
  if (isRefusal(accounts) && accounts.reason === 'token_invalid') return accounts;
  const role = parseGrants(payload, rules.role, 'role', rules.roles, accounts);
  if (isRefusal(role)) return role;
  const scope = rules.scopes === undefined ? none : parseGrants(payload, rules.scope, 'scope', rules.scopes, accounts);
  if (isRefusal(scope)) return scope;
  const actor = parseActor(payload, rules);
  if (typeof actor === 'object') return actor;
  const otherScopes = rules.scopes && isEmpty(scope) ? describeClaim(payload, rules.scope) : undefined;
  const forwarded = rules.forwarded.map(({ parts: [path] }) => toForwarded(valueAt(payload, path)));
  const { accounts: issuerAccounts, issuer: iss } = rules;
  const ids = { jti: parseTokenId(payload), sid: parseSessionId(payload) };
  return { uid, app, accounts, issuerAccounts, role, scope, otherScopes, actor, forwarded, iss, ...ids };
}

/** Those of its fields that are right, although another claim of the token is wrong. Its signature is verified. */
export function parseSignedIdentity(payload: unknown, rules: IdentityRules): SignedIdentity {
  const right = (field: string | object | undefined): string | undefined =>
    typeof field === 'string' ? field : undefined;
  const accounts = parseAccounts(payload, rules);
  return {
    uid: right(parseField(payload, rules.uid, 'uid')),
    app: right(parseField(payload, rules.app, 'app')),
    acc: typeof accounts === 'string' ? accounts : undefined,
    actor: right(parseActor(payload, rules)),
    iss: rules.issuer,
    jti: parseTokenId(payload),
    sid: parseSessionId(payload),
  };
}

/** Of each field, and not only the first: for a person who must mend all of them. A missing role or scope is one of them. */
export function identityProblems(payload: unknown, rules: IdentityRules): readonly Refusal[] {
  const accounts = parseAccounts(payload, rules);
  const read = [
    parseField(payload, rules.uid, 'uid'),
    parseField(payload, rules.app, 'app'),
    accounts,
    ...(['role', 'scope'] as const).map(field => {
      const [source, table] = [rules[field], rules[`${field}s`]];
      const hasIt = source.parts.length > 1 || valueAt(payload, source.parts[0]) !== undefined;
      if (table === undefined) return none;
      return hasIt
        ? parseGrants(payload, source, field, table, accounts)
        : invalid(payload, source, `${field} is missing`);
    }),
  ];
  return read.filter(isRefusal).filter(({ reason }) => reason === 'token_invalid');
}

function isEmpty(claimed: Claimed | ClaimedByAccount): boolean {
  return !('kind' in claimed) && claimed.length === 0;
}

const none: readonly string[] = [];
const maxIdLength = 1024;

// A revocation list names it by its text.
function parseTokenId(payload: unknown): string | undefined {
  const jti = memberOf(payload, 'jti');
  return Number.isSafeInteger(jti) ? String(jti) : toId(jti);
}

function parseSessionId(payload: unknown): string | undefined {
  return toId(memberOf(payload, 'sid'));
}

function toId(claim: unknown): string | undefined {
  return typeof claim === 'string' && claim.length <= maxIdLength ? claim : undefined;
}

function parseActor(payload: unknown, { actor }: IdentityRules): string | Refusal | undefined {
  if (actor === undefined || valueAt(payload, actor.parts[0]) === undefined) return undefined;
  return parseField(payload, [actor], 'actor');
}

// Visible ASCII and single spaces within it, which every reader of a header takes alike.
const forwardedGrammar = /^[!-~]+(?: [!-~]+)*$/;
const maxForwardedLength = 256;

function toForwarded(value: unknown): string | undefined {
  if (typeof value === 'boolean' || Number.isSafeInteger(value)) return String(value);
  const isSent = typeof value === 'string' && value.length <= maxForwardedLength && forwardedGrammar.test(value);
  return isSent ? value : undefined;
}

function parseField(
  payload: unknown,
  sources: readonly CompiledSource[],
  field: 'uid' | 'app' | 'actor',
): string | Refusal {
  const source = presentSource(payload, sources);
  if (source === undefined) {
    const found = sources.map(each => describeClaim(payload, each)).join(', ');
    return refusal('token_invalid', `${field} is missing or not a string`, found);
  }
  const list = valueAt(payload, source.parts[0]);
  if (Array.isArray(list)) {
    const hint =
      typeof list[0] === 'object' || list.length === 0 ? '' : `; ${memberPointer(source)} reads its first member`;
    return refusal('token_invalid', `${field} is a list`, `${describeClaim(payload, source, true)}${hint}`);
  }
  const value = readSource(payload, source);
  if (typeof value === 'string' && isIdentityField(value)) return value;
  if (typeof value === 'string') return invalid(payload, source, `${field} is outside the grammar`);
  const isWrong = value !== undefined && 'problem' in value;
  return invalid(payload, source, isWrong ? `${field} ${value.problem}` : `${field} is missing or not a string`);
}

const maxAccounts = 1000;

export function parseAccounts(payload: unknown, rules: IdentityRules): Identity['accounts'] {
  const { acc: source, account } = rules;
  if (source === undefined) return severalAccounts(account === undefined ? [] : [account], rules);
  const value = readSource(payload, source);
  if (value === undefined) return invalid(payload, source, 'acc is missing');
  if (typeof value !== 'string')
    return 'problem' in value ? invalid(payload, source, `acc ${value.problem}`) : severalAccounts(value, rules);
  switch (accountProblem(value, rules.grammar)) {
    case undefined:
      return severalAccounts([value], rules);
    case 'dots':
      return invalid(payload, source, 'acc has a dot, and account.dots is off');
    case 'case':
      return invalid(payload, source, 'acc has an upper-case letter, and account.case is lower');
    case 'grammar':
      return invalid(payload, source, 'acc is outside the grammar');
  }
}

function severalAccounts(names: readonly string[], { accounts, grammar }: IdentityRules): Identity['accounts'] {
  // Most tokens have one.
  const [first] = names;
  if (names.length === 1 && first !== undefined && isAccount(first, grammar) && mayClaim(accounts, first)) return first;
  const different = new Set(names);
  if (different.size > maxAccounts) return refusal('token_invalid', `acc names more than ${maxAccounts} accounts`);
  const sound = [...different].filter(name => isAccount(name, grammar));
  const claimed = new Set(sound.filter(name => mayClaim(accounts, name)));
  const [only] = claimed;
  if (only === undefined) {
    return sound.length === 0
      ? refusal('account_mismatch', 'the token has no account inside the grammar', describeValue('acc', names))
      : refusal(
          'account_mismatch',
          'the token has no account that its issuer may speak for',
          describeValue('acc', sound),
        );
  }
  return claimed.size === 1 ? only : claimed;
}

const maxNames = 250;

/** What the token has of one permission table. */
function parseGrants(
  payload: unknown,
  source: CompiledSource,
  field: 'role' | 'scope',
  table: Permissions,
  accounts: Identity['accounts'],
): Claimed | ClaimedByAccount | Refusal {
  if (source.parts.length === 1) {
    const value = readSource(payload, source);
    // `having` asks for the type of the object alone: the names in it depend on the account.
    const claimed = toClaimed(source.havingAccount && Array.isArray(value) ? [] : value, table);
    if ('problem' in claimed) return invalid(payload, source, `${field} ${claimed.problem}`);
    if (!source.havingAccount) return claimed;
  }
  const read = readSourceByAccount(payload, source);
  // Most accounts have the same names, so equal lists are kept once.
  const kept = new Map<string, Claimed | Refusal>();
  const byAccount = new Map<Account, Claimed | Refusal>();
  for (const account of accountsIn(accounts)) {
    const claimed = toClaimed(read(account), table);
    const key = 'problem' in claimed ? `!${claimed.problem}` : String(claimed);
    const known = kept.get(key) ?? ('problem' in claimed ? invalidForAccount(field, claimed.problem) : claimed);
    kept.set(key, known);
    byAccount.set(account, known);
  }
  return { kind: 'byAccount', claimed: byAccount };
}

function accountsIn(accounts: Identity['accounts']): Iterable<Account> {
  if (typeof accounts === 'string') return [accounts];
  return 'kind' in accounts ? [] : accounts;
}

type GrantProblem = SourceProblem | 'has more than 250 members';

// Keeps the names of the table, which are there anyway, and no text of the token.
function toClaimed(value: SourceValue, table: Permissions): Claimed | { readonly problem: GrantProblem } {
  if (value === undefined) return none;
  if (typeof value === 'object' && 'problem' in value) return value;
  const names = typeof value === 'string' ? [value] : value;
  return names.length > maxNames ? { problem: 'has more than 250 members' } : namesIn(table, names);
}

function isRefusal<T>(parsed: T | Refusal): parsed is Refusal {
  return typeof parsed === 'object' && parsed !== null && 'reason' in parsed;
}

function invalid(payload: unknown, source: CompiledSource, detail: DetailOf<'token_invalid'>): Refusal {
  return refusal('token_invalid', detail, describeClaim(payload, source, true));
}

function invalidForAccount(field: 'role' | 'scope', problem: GrantProblem): Refusal {
  return refusal('token_invalid', `${field} ${problem}, for the addressed account`);
}

const maxListed = 8;

/** A claim of a verified token for the log, printable and bounded: `aud is https://a.test, account`. `isWrong`: a list is shown as one. */
export function describeClaim(payload: unknown, { text, parts: [path] }: CompiledSource, isWrong = false): string {
  return describeValue(text, valueAt(payload, path), isWrong);
}

function describeValue(name: string, value: unknown, isWrong = false): string {
  if (value === undefined) return `there is no ${printable(name)}`;
  if (!Array.isArray(value)) return `${printable(name)} is ${show(value)}`;
  const isQuoted = isWrong && value.length > 0;
  const members = value.map(each => (isQuoted && typeof each === 'string' ? quotedPrintable(each) : show(each)));
  const list = listWords(members, maxListed) || 'an empty list';
  return isQuoted ? `${printable(name)} is a list: [${list}]` : `${printable(name)} is ${list}`;
}

function show(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (isJsonObject(value)) return 'an object';
  const text = printable(String(value));
  return text !== '' && text === text.trim() ? text : `"${text}"`;
}

function memberPointer({ text, parts: [path] }: CompiledSource): string {
  return printable(`${text.startsWith('/') ? text : toPointer(path)}/0`);
}
