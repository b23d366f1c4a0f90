// Parses the identity of a token from its claims: user, application, accounts, roles, scopes and actor.
import { type IssuerAccounts, mayClaim } from '../authz/issuer-accounts.ts';
import { namesIn, type Permissions } from '../authz/permission.ts';
import {
  type Account,
  type Claimed,
  type ClaimedByAccount,
  type Identity,
  isAccount,
  isIdentityField,
  type SignedIdentity,
} from '../authz/principal.ts';
import { type Refusal, refusal } from '../authz/refusal.ts';
import { type JsonPath, parsePath, valueAt } from '../json/json-pointer.ts';
import { memberOf } from '../json/strict-json.ts';
import {
  type ClaimSource,
  type CompiledSource,
  compileSource,
  readSource,
  readSourceByAccount,
  type SourceProblem,
  type SourceValue,
} from './claim-source.ts';

/** `claims` of an issuer, as the configuration writes them. */
export interface ClaimSources {
  readonly uid: string;
  readonly app: string;
  readonly acc: ClaimSource;
  readonly role: ClaimSource;
  readonly scope: string;
  readonly actor?: string;
}

/** Compiled for `parseIdentity`. */
export interface IdentityRules {
  readonly issuer: string;
  readonly uid: JsonPath;
  readonly app: JsonPath;
  readonly actor: JsonPath | undefined;
  readonly acc: CompiledSource;
  readonly role: CompiledSource;
  readonly scope: CompiledSource;
  /** Names of other roles and scopes are not kept. */
  readonly roles: Permissions;
  /** Undefined: scopes are not read. */
  readonly scopes: Permissions | undefined;
  readonly accounts: IssuerAccounts;
  readonly dots: boolean;
  readonly allowIntegerClaims: boolean;
}

/** Throws on an invalid source, which the validation of a configuration reports. */
export function compileClaimSources({ uid, app, acc, role, scope, actor }: ClaimSources) {
  return {
    uid: compilePath(uid),
    app: compilePath(app),
    acc: compileSource(acc),
    role: compileSource(role),
    scope: compileSource(scope, 'words or list'),
    actor: actor === undefined ? undefined : compilePath(actor),
  };
}

function compilePath(name: string): JsonPath {
  const path = parsePath(name);
  if (path === undefined) throw new Error('the configuration has an invalid JSON Pointer');
  return path;
}

/** Reads every claim once. What depends on the account that a request addresses is kept for each account of the token. */
export function parseIdentity(payload: unknown, rules: IdentityRules): Identity | Refusal {
  const uid = parseField(payload, rules, 'uid');
  if (typeof uid !== 'string') return uid;
  const app = parseField(payload, rules, 'app');
  if (typeof app !== 'string') return app;
  const accounts = parseAccounts(payload, rules);
  if (typeof accounts !== 'string' && 'kind' in accounts) return accounts;
  const role = parseGrants(payload, rules, 'role', rules.roles, accounts);
  if (isRefusal(role)) return role;
  const scope = rules.scopes === undefined ? none : parseGrants(payload, rules, 'scope', rules.scopes, accounts);
  if (isRefusal(scope)) return scope;
  const actor = parseActor(payload, rules);
  if (typeof actor === 'object') return actor;
  return { uid, app, accounts, role, scope, actor, iss: rules.issuer, jti: parseId(payload) };
}

/** Those of its fields that are right, although another claim of the token is wrong. Its signature is verified. */
export function parseSignedIdentity(payload: unknown, rules: IdentityRules): SignedIdentity {
  const right = (field: string | object | undefined): string | undefined =>
    typeof field === 'string' ? field : undefined;
  const accounts = parseAccounts(payload, rules);
  return {
    uid: right(parseField(payload, rules, 'uid')),
    app: right(parseField(payload, rules, 'app')),
    acc: typeof accounts === 'string' ? accounts : undefined,
    actor: right(parseActor(payload, rules)),
    iss: rules.issuer,
    jti: parseId(payload),
  };
}

const none: readonly string[] = [];
const maxIdLength = 1024;

// A revocation list names it by its text.
function parseId(payload: unknown): string | undefined {
  const jti = memberOf(payload, 'jti');
  if (Number.isSafeInteger(jti)) return String(jti);
  return typeof jti === 'string' && jti.length <= maxIdLength ? jti : undefined;
}

function parseActor(payload: unknown, rules: IdentityRules): string | Refusal | undefined {
  if (rules.actor === undefined || valueAt(payload, rules.actor) === undefined) return undefined;
  return parseField(payload, rules, 'actor');
}

function parseField(payload: unknown, rules: IdentityRules, field: 'uid' | 'app' | 'actor'): string | Refusal {
  const value = valueAt(payload, rules[field] ?? []);
  if (typeof value !== 'string' && typeof value !== 'number') return invalid(field, 'is missing or not a string');
  const text = toText(value, rules);
  if (typeof text !== 'string') return invalid(field, text.problem);
  return isIdentityField(text) ? text : invalid(field, 'is outside the grammar');
}

type ClaimProblem =
  | SourceProblem
  | 'is missing'
  | 'is missing or not a string'
  | 'is a number and allowIntegerClaims is off'
  | 'is not a safe integer'
  | 'is outside the grammar'
  | 'has more than 100 members';

function toText(
  value: string | number,
  { allowIntegerClaims }: IdentityRules,
): string | { readonly problem: ClaimProblem } {
  if (typeof value === 'string') return value;
  if (!allowIntegerClaims) return { problem: 'is a number and allowIntegerClaims is off' };
  // Beyond the safe integers, JSON parsing reads two texts as one number, so two accounts could become one.
  const isSafe = Number.isSafeInteger(value) && value >= 0 && !Object.is(value, -0);
  return isSafe ? String(value) : { problem: 'is not a safe integer' };
}

const maxAccounts = 1000;
const noAccounts: ReadonlySet<Account> = new Set();

function parseAccounts(payload: unknown, rules: IdentityRules): Identity['accounts'] | Refusal {
  const value = readSource(payload, rules.acc);
  if (value === undefined) return invalid('acc', 'is missing');
  if (typeof value === 'object' && 'problem' in value) return invalid('acc', value.problem);
  if (typeof value === 'object') return severalAccounts(value, rules);
  const text = toText(value, rules);
  if (typeof text !== 'string') return invalid('acc', text.problem);
  if (isAccount(text, rules.dots)) return mayClaim(rules.accounts, text) ? text : noAccounts;
  return isAccount(text, true)
    ? refusal('token_invalid', 'acc has a dot, and account.dots is off')
    : invalid('acc', 'is outside the grammar');
}

function severalAccounts(names: readonly string[], { accounts, dots }: IdentityRules): Identity['accounts'] | Refusal {
  const different = new Set(names);
  if (different.size > maxAccounts) return refusal('token_invalid', `acc names more than ${maxAccounts} accounts`);
  const claimed = new Set<Account>();
  for (const name of different) if (isAccount(name, dots) && mayClaim(accounts, name)) claimed.add(name);
  const [only] = claimed;
  return only !== undefined && claimed.size === 1 ? only : claimed;
}

const maxNames = 100;

/** What the token has of one permission table. */
function parseGrants(
  payload: unknown,
  rules: IdentityRules,
  field: 'role' | 'scope',
  table: Permissions,
  accounts: Identity['accounts'],
): Claimed | ClaimedByAccount | Refusal {
  const source = rules[field];
  if (source.parts.length === 1) {
    const value = readSource(payload, source);
    // `having` asks for the type of the object alone: the names in it depend on the account.
    const claimed = toClaimed(source.havingAccount && Array.isArray(value) ? [] : value, field, table, rules);
    if (isProblem(claimed)) return invalid(field, claimed.problem);
    if (!source.havingAccount) return claimed;
  }
  const read = readSourceByAccount(payload, source);
  // Most accounts have the same names, so equal lists are kept once.
  const kept = new Map<string, Claimed | Refusal>();
  const byAccount = new Map<Account, Claimed | Refusal>();
  for (const account of typeof accounts === 'string' ? [accounts] : accounts) {
    const claimed = toClaimed(read(account) ?? none, field, table, rules);
    const key = isProblem(claimed) ? `!${claimed.problem}` : String(claimed);
    const known = kept.get(key) ?? (isProblem(claimed) ? invalidForAccount(field, claimed.problem) : claimed);
    kept.set(key, known);
    byAccount.set(account, known);
  }
  return { kind: 'byAccount', claimed: byAccount };
}

interface GrantProblem {
  readonly problem: ClaimProblem;
}

// Keeps the names of the table, which are there anyway, and no text of the token but a name that stands alone, for the log.
function toClaimed(
  value: SourceValue,
  field: 'role' | 'scope',
  table: Permissions,
  rules: IdentityRules,
): Claimed | GrantProblem {
  if (value === undefined) return field === 'role' ? { problem: 'is missing' } : none;
  if (typeof value === 'object' && 'problem' in value) return value;
  if (typeof value === 'object') {
    return value.length > maxNames ? { problem: 'has more than 100 members' } : namesIn(table, value);
  }
  const text = toText(value, rules);
  if (typeof text !== 'string') return text;
  return isIdentityField(text) ? (table.get(text)?.name ?? text) : { problem: 'is outside the grammar' };
}

function isProblem(claimed: Claimed | GrantProblem): claimed is GrantProblem {
  return typeof claimed === 'object' && 'problem' in claimed;
}

function isRefusal(parsed: Claimed | ClaimedByAccount | Refusal): parsed is Refusal {
  return typeof parsed === 'object' && 'reason' in parsed;
}

function invalid(field: 'uid' | 'app' | 'acc' | 'role' | 'scope' | 'actor', problem: ClaimProblem): Refusal {
  return refusal('token_invalid', `${field} ${problem}`);
}

function invalidForAccount(field: 'role' | 'scope', problem: ClaimProblem): Refusal {
  return refusal('token_invalid', `${field} ${problem}, for the addressed account`);
}
