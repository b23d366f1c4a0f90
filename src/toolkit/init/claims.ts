// Chooses the claims of a token that are its user, application, accounts, roles and scopes, from the table of shapes.
import { isAccount, isIdentityField } from '../../authz/principal.ts';
import { isJsonObject } from '../../json/strict-json.ts';
import {
  accountPlaceholder,
  type ClaimSource,
  compileSource,
  readSource,
  readSourceByAccount,
  type SourceValue,
  textOf,
} from '../../token/claim-source.ts';
import { type ClaimField, claimShapes, weakSources } from './claim-shapes.ts';

export interface ChosenClaim {
  /** Undefined: the token has no candidate. */
  readonly source: ClaimSource | undefined;
  /** Further candidates, in the order of the table. */
  readonly others: readonly ClaimSource[];
  /** Whether another candidate is of another kind, so that a person must choose. */
  readonly isAmbiguous: boolean;
  /** What the source reads. */
  readonly names: readonly string[];
  /** Whether it has a list, or the names of an object, and not one string. */
  readonly isSeveral: boolean;
  readonly hasIntegers: boolean;
}

export type ChosenClaims = Readonly<Record<ClaimField, ChosenClaim>>;

type Payload = Readonly<Record<string, unknown>>;

interface Candidate {
  readonly source: ClaimSource;
  readonly kind: 'one' | 'list' | 'names' | 'words' | 'by account';
  readonly names: readonly string[];
  readonly hasIntegers: boolean;
}

export function chooseClaims(payload: Payload): ChosenClaims {
  // An account of one row takes the other fields of the row first: a role is read where the provider writes it beside the account.
  const acc = choose('acc', payload, []);
  const accounts = acc.names;
  const row = claimShapes.find(shape => shape.acc?.some(each => isSame(each, acc.source)));
  const others = (field: ClaimField) => choose(field, payload, accounts, row?.[field === 'acc' ? 'uid' : field]);
  return { uid: others('uid'), app: others('app'), acc, role: others('role'), scope: others('scope') };
}

function choose(
  field: ClaimField,
  payload: Payload,
  accounts: readonly string[],
  first: readonly ClaimSource[] = [],
): ChosenClaim {
  const known = [...first, ...claimShapes.flatMap((shape): readonly ClaimSource[] => shape[field] ?? [])];
  const sources = [...known, ...namespaced(payload, known)];
  const unique = sources.filter((each, i) => sources.findIndex(other => isSame(each, other)) === i);
  const readable = unique.flatMap(source => read(source, field, payload, accounts) ?? []);
  const found = readable.filter((each, i) => readable.findIndex(other => isSame(each.source, other.source)) === i);
  const isWeak = ({ source }: Candidate): boolean => weakSources.has(textOf(source));
  const strong = found.filter(each => !isWeak(each));
  const [best, ...others] = [...strong, ...found.filter(isWeak)];
  // A role that the provider writes in the account is the narrower one. One role or a list of them is all the same to roles.
  const kindOf = ({ kind }: Candidate): string => (field === 'role' && kind === 'one' ? 'list' : kind);
  const isAmbiguous =
    best !== undefined && best.kind !== 'by account' && strong.some(each => kindOf(each) !== kindOf(best));
  return {
    source: best?.source,
    others: others.map(({ source }) => source),
    isAmbiguous,
    names: best?.names ?? [],
    isSeveral: best !== undefined && best.kind !== 'one',
    hasIntegers: best?.hasIntegers ?? false,
  };
}

/** Members named by a URL whose last segment is a name of the table: `https://api.example.com/account`. */
function namespaced(payload: Payload, known: readonly ClaimSource[]): readonly string[] {
  const names = new Set(known.filter(each => typeof each === 'string'));
  return Object.keys(payload).filter(
    name => /^[A-Za-z][A-Za-z0-9+.-]*:\/\//.test(name) && names.has(name.slice(name.lastIndexOf('/') + 1)),
  );
}

function isSame(one: ClaimSource | undefined, other: ClaimSource | undefined): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Undefined where the token has nothing there that the engine could use. */
function read(
  source: ClaimSource,
  field: ClaimField,
  payload: Payload,
  accounts: readonly string[],
): Candidate | undefined {
  if (field === 'uid' || field === 'app') {
    const { value, hasIntegers } = readValue(source, payload, accounts);
    if (typeof value !== 'string' || !isIdentityField(value)) return undefined;
    return { source, kind: 'one', names: [value], hasIntegers };
  }
  const form = field === 'scope' ? ('words or list' as const) : undefined;
  const { value, hasIntegers, isByAccount } = readValue(source, payload, accounts, form);
  if (typeof value === 'string' && field === 'acc' && isAnyAccount(value))
    return { source, kind: 'one', names: [value], hasIntegers };
  // Several words in one string: `owner,admin`.
  if (typeof source === 'string' && field !== 'scope') {
    const texts = typeof value === 'string' ? [value] : isByAccount && Array.isArray(value) ? value : [];
    const by = texts.flatMap(text => /^[^ ,]+([ ,])[^ ,]+(?:\1[^ ,]+)*$/.exec(text)?.[1] ?? [])[0];
    const wordsOf = by && read(by === ',' ? { wordsOf: source, by } : { wordsOf: source }, field, payload, accounts);
    if (wordsOf) return wordsOf;
  }
  if (value === undefined || (typeof value === 'object' && 'problem' in value)) return undefined;
  const names = (typeof value === 'string' ? [value] : value).filter(field === 'acc' ? isAnyAccount : isRole);
  if (names.length === 0) return undefined;
  const ofSource =
    typeof source === 'string' ? (typeof value === 'string' ? 'one' : 'list') : 'keysOf' in source ? 'names' : 'words';
  return { source, kind: isByAccount ? 'by account' : ofSource, names: [...new Set(names)], hasIntegers };
}

function readValue(source: ClaimSource, payload: Payload, accounts: readonly string[], form?: 'words or list') {
  const isByAccount = textOf(source).includes(accountPlaceholder) || (typeof source === 'object' && 'having' in source);
  const readWith = (allowsIntegers: boolean): SourceValue => {
    const compiled = compileSource(source, allowsIntegers, form);
    if (!isByAccount) return readSource(payload, compiled);
    const byAccount = readSourceByAccount(payload, compiled);
    const values = accounts.map(byAccount).filter(value => value !== undefined);
    const wrong = values.find(value => isJsonObject(value));
    if (wrong !== undefined || values.length === 0) return wrong as SourceValue;
    return values.flatMap(value => (typeof value === 'string' ? [value] : Array.isArray(value) ? value : []));
  };
  const strict = readWith(false);
  const isNumber = typeof strict === 'object' && 'problem' in strict && strict.problem.includes('number');
  const value = isNumber ? readWith(true) : strict;
  return { value, hasIntegers: isNumber, isByAccount };
}

function isAnyAccount(name: string): boolean {
  return isAccount(name, { dots: true, lower: false });
}

// Of OpenID Connect and of Keycloak: every user has them, so they are the role of nobody.
const technicalNames = /^(?:openid|profile|email|address|phone|offline_access|uma_authorization|default-roles-.*)$/;

function isRole(name: string): boolean {
  return /^[^\p{Cc}]{1,256}$/u.test(name) && !technicalNames.test(name);
}
