// Asks the engine of both configurations one question of each class of requests and tokens that neither can tell apart.
import { addressedAccount } from '../../authz/account.ts';
import { admit, type Policy } from '../../authz/authorize.ts';
import { compileIssuerAccounts } from '../../authz/issuer-accounts.ts';
import { allMethods, claimedNamesOf, grantsOf, methodsOf, parseGrant, permittedNames } from '../../authz/permission.ts';
import type { Account } from '../../authz/principal.ts';
import type { RequestFacts } from '../../authz/request-facts.ts';
import type { Route, RouteMatch } from '../../authz/route-tree.ts';
import { toPolicy } from '../../check/engine.ts';
import type { Config } from '../../config/schema.ts';
import type { Both, PathClass } from './path-classes.ts';

/**
 * What is special about the requests and tokens of a row. `another`: a place that one configuration alone compares names another account;
 * `several`: the token has several accounts and the request names none in a place that both compare; `wide`: the path has a character
 * outside the strict grammar; `loose`: a literal is spelled as some server may read it.
 */
export type Mode = 'own' | 'another' | 'several' | 'wide' | 'loose';

export type Kind = 'more' | 'less' | 'other';

/** What changes for one method of a class. */
export interface Change {
  readonly kind: Kind;
  readonly mode: Mode;
  /** Undefined: every method. */
  readonly method: string | undefined;
  /** As tokens write them. Undefined: whatever the role, where it permits nothing. */
  readonly roles: readonly string[] | undefined;
  /** One of which a token has; `*` with `!`: any but these, or none. Undefined: whatever the scopes. */
  readonly scopes: readonly string[] | undefined;
  /** Reasons. */
  readonly before: string;
  readonly after: string;
}

export interface Sent {
  readonly path: string;
  /** Those of the token. */
  readonly accounts: readonly Account[];
}

/** Equal for all classes in which the same changes. */
export interface Difference {
  readonly id: number;
  readonly changes: readonly Change[];
  readonly members: PathClass[];
}

/** Something that both configurations permit. */
export interface Permission {
  readonly sent: Sent;
  readonly method: string;
  readonly role: string;
  readonly scope: string | undefined;
}

/** Values that no configuration names. `own` and `second` are accounts that some issuer may speak for. */
export interface Samples {
  readonly own: Account;
  /** Undefined: no token that both verify can have several accounts. */
  readonly second: Account | undefined;
  readonly foreign: string;
  /** Whether a token that both verify can have the account. */
  mayClaim(account: string): boolean;
}

interface View {
  readonly mode: Mode;
  readonly verdicts: Both<string | undefined>;
  readonly sent: Sent;
  /** What stands in the place of some segments. */
  readonly texts: Texts;
}

type Texts = ReadonlyMap<number, string>;

type Asked =
  | { readonly kind: 'refused'; readonly reason: string }
  | {
      readonly kind: 'match';
      readonly accounts: readonly Account[];
      readonly positions: readonly number[];
      readonly allowed: Allowed;
    };

/** The roles and scopes that a configuration permits, by method. */
interface Allowed {
  readonly id: number;
  readonly byMethod: readonly Permitted[];
}

interface Permitted {
  readonly roles: readonly string[];
  /** Undefined: any. */
  readonly scopes: readonly string[] | undefined;
}

const wideSegment = '%C3%A9t%C3%A9';
const anyIssuer = compileIssuerAccounts(['*']);

/** Those that `*` stands for, those that either configuration names, and one that is neither. */
export function methodsIn(configs: Both<Config>): readonly string[] {
  const named = configs.flatMap(({ roles, scopes }) =>
    [...roles.values(), ...(scopes?.values() ?? [])].flatMap(entry =>
      grantsOf(entry).flatMap(text => methodsOf(parseGrant(text))),
    ),
  );
  const known = new Set([...allMethods, ...named]);
  let other = 'OTHER';
  while (known.has(other)) other += 'S';
  return [...known, other];
}

const bearer: readonly (readonly [string, string])[] = [['authorization', 'Bearer token']];

/** `lines`: the header lines, with that of the token. */
export function factsOf(method: string, target: string, lines = bearer): RequestFacts {
  const headers = new Map<string, string[]>();
  for (const [name, value] of lines) headers.set(name, [...(headers.get(name) ?? []), value]);
  return { method, target, host: headers.get('host')?.[0] ?? '', headers, certificate: '', contradiction: undefined };
}

/**
 * Complete, because an allow is a conjunction: the request is sound, its host is known, its routes match, the places that it names an
 * account in agree with the token, and one role, one scope and the application may call. What does not depend on the path (hosts, headers,
 * query, applications: `places.ts`) is left out of the policies here, so that what is left depends on the class of the path, the places
 * of the account in it, the method, and the names of roles and scopes. A token has what its best pair of a role and a scope has, so that
 * the set of roles R and of scopes S that each configuration permits says all: more is (R2 × S2) without (R1 × S1). Where both
 * compare the same segments with the account, one account says what every account gets, for tokens with one and with several; elsewhere
 * a request is asked with another account in the segments that one side alone compares, and a token with several. One segment outside the
 * strict grammar says what many do, because a side permits such segments one by one.
 */
export function createQuestions(configs: Both<Config>, methods: readonly string[], samples: Samples) {
  const askers = configs.map((config, side) => createAsker(config, side, methods));
  const [before, after] = askers;
  if (before === undefined || after === undefined) throw new Error('two configurations');
  const hasWide = configs.some(({ routes }) => routes.some(({ characters }) => characters === 'rfc3986'));
  const known = new Map<string, Difference>();
  const kindsOf = new Map<string, readonly Change[]>();
  const common: { withAccount?: Permission; withoutAccount?: Permission } = {};

  const ask = (path: string): Both<Asked> => [before(path), after(path)];
  const pathWith = (pathClass: PathClass, special: Texts = new Map(), isLoose = false): string =>
    pathOf(pathClass, samples.own, special, isLoose);
  const viewOf = (mode: Mode, path: string, accounts: readonly Account[], texts: Texts = new Map()): View => {
    const asked = ask(path);
    const [first = samples.own] = accounts;
    const identity = { accounts: accounts.length > 1 ? new Set(accounts) : first, issuerAccounts: anyIssuer };
    const verdictOf = (each: Asked): string | undefined => {
      if (each.kind === 'refused') return each.reason;
      const addressed = addressedAccount(each.accounts, identity);
      return typeof addressed === 'string' ? undefined : addressed.reason;
    };
    return { mode, verdicts: [verdictOf(asked[0]), verdictOf(asked[1])], sent: { path, accounts }, texts };
  };

  /** Of a loose class: the class of any other segment in the place of that literal. */
  function ownViews(pathClass: PathClass): { readonly views: readonly View[]; readonly asked: Both<Asked> } {
    const path = pathWith(pathClass);
    const asked = ask(path);
    const matches = asked.filter(each => each.kind === 'match');
    const own = viewOf('own', path, [samples.own]);
    // A literal may stand where the account is: then the account is named like it, in every such place.
    const named = new Set(matches.flatMap(({ accounts }) => accounts));
    named.delete(samples.own);
    if (named.size === 0) return { views: [own], asked };
    const places = [...new Set(matches.flatMap(({ positions }) => positions))];
    const views = [...named].flatMap(account => {
      if (!samples.mayClaim(account)) return [];
      const texts = new Map(places.filter(i => canStandAt(pathClass, i, account)).map(i => [i, account]));
      return [viewOf('own', pathWith(pathClass, texts), [account], texts)];
    });
    const best = views.find(isBothOk);
    return { views: best === undefined ? [...views, own] : [best], asked };
  }

  function extraViews(pathClass: PathClass, own: View, [one, other]: Both<Asked>): readonly View[] {
    const views: View[] = [];
    const { accounts } = own.sent;
    const [account = samples.own] = accounts;
    const also = (mode: Mode, texts: Texts): View =>
      viewOf(mode, pathWith(pathClass, new Map([...own.texts, ...texts])), accounts);
    const others = pathClass.segments.flatMap(({ kind }, i) => (kind === 'other' ? [i] : []));
    if (pathClass.isLoose) views.push(...looseViews(pathClass, own, [one, other]));
    else if (one.kind === 'match' && other.kind === 'match' && String(one.positions) !== String(other.positions)) {
      for (const [mine, its] of [
        [one.positions, other.positions],
        [other.positions, one.positions],
      ] as const) {
        const free = others.filter(i => mine.includes(i) && !its.includes(i));
        if (free.length > 0) views.push(also('another', new Map(free.map(i => [i, samples.foreign]))));
      }
      if (account !== samples.own) views.push(viewOf('another', pathWith(pathClass), [samples.own]));
      if (samples.second !== undefined) views.push(viewOf('several', own.sent.path, [account, samples.second]));
    }
    if (hasWide && !pathClass.isLoose) for (const i of others) views.push(also('wide', new Map([[i, wideSegment]])));
    return views.filter(({ verdicts }) => verdicts[0] !== verdicts[1]);
  }

  /** Where the literal stands in the place of the account, the account is named like its spelling. */
  function looseViews(pathClass: PathClass, { texts, sent: { accounts } }: View, asked: Both<Asked>): readonly View[] {
    const path = pathWith(pathClass, texts, true);
    const named = ask(path).flatMap(each => (each.kind === 'match' ? each.accounts : []));
    const places = asked.flatMap(each => (each.kind === 'match' ? each.positions : []));
    return [...new Set([...accounts, ...named])].map(account => {
      if (accounts.includes(account) || !samples.mayClaim(account)) return viewOf('loose', path, accounts, texts);
      const own = new Map([...texts, ...places.map(i => [i, account] as const)]);
      return viewOf('loose', pathWith(pathClass, own, true), [account], own);
    });
  }

  /** What both permit, by whether the path names an account in either. */
  function keepCommon(view: View, [one, other]: Both<Asked>): void {
    if (one.kind !== 'match' || other.kind !== 'match') return;
    const kind = one.positions.length + other.positions.length === 0 ? 'withoutAccount' : 'withAccount';
    if (common[kind] !== undefined) return;
    for (const [i, method] of methods.entries()) {
      const [mine, its] = [one.allowed.byMethod[i], other.allowed.byMethod[i]];
      const [role] = intersection(mine?.roles, its?.roles) ?? [];
      const scopes = intersection(mine?.scopes, its?.scopes);
      if (role === undefined || scopes?.length === 0) continue;
      common[kind] = { sent: view.sent, method, role, scope: scopes?.[0] };
      return;
    }
  }

  function viewsOf(pathClass: PathClass): { readonly all: readonly View[]; readonly asked: Both<Asked> } {
    const { views, asked } = ownViews(pathClass);
    const [own] = views;
    if (own === undefined) return { all: [], asked };
    if (isBothOk(own) && !pathClass.isLoose) keepCommon(own, asked);
    const extra = isBothOk(own) ? extraViews(pathClass, own, asked) : [];
    return { all: [...(pathClass.isLoose ? [] : views), ...extra], asked };
  }

  return {
    /** A request of the class that shows a change. */
    sentOf(pathClass: PathClass, { mode, kind }: Pick<Change, 'mode' | 'kind'>): Sent | undefined {
      const { all } = viewsOf(pathClass);
      const kindsIn = (verdicts: Both<string | undefined>): readonly Kind[] =>
        mode === 'own' ? ownKinds(verdicts) : [kindOf(verdicts)];
      return all.find(each => each.mode === mode && kindsIn(each.verdicts).includes(kind))?.sent;
    },
    common: (): Readonly<typeof common> => common,
    /** What changes in a class; undefined if nothing does. */
    differenceOf(pathClass: PathClass): Difference | undefined {
      const { all, asked } = viewsOf(pathClass);
      const allowed = asked.map(each => (each.kind === 'match' ? each.allowed : undefined));
      const key = [
        ...allowed.map(each => each?.id),
        ...all.flatMap(({ mode, verdicts }) => [mode, ...verdicts]),
      ].join();
      const changes = kindsOf.get(key) ?? all.flatMap(view => changesOf(view, methods, [allowed[0], allowed[1]]));
      kindsOf.set(key, changes);
      if (changes.length === 0) return undefined;
      const difference = known.get(key) ?? { id: known.size, changes, members: [] };
      known.set(key, difference);
      difference.members.push(pathClass);
      return difference;
    },
    differences: (): readonly Difference[] => [...known.values()],
  };
}

function isBothOk({ verdicts }: View): boolean {
  return verdicts[0] === undefined && verdicts[1] === undefined;
}

function ownKinds([before, after]: Both<string | undefined>): readonly Kind[] {
  const kinds: readonly Kind[] = ['more', 'less', 'other'];
  if (before !== undefined) return after === undefined ? ['more', 'other'] : ['other'];
  return after === undefined ? kinds : ['less', 'other'];
}

function kindOf([before, after]: Both<string | undefined>): Kind {
  if (before !== undefined && after !== undefined) return 'other';
  return after === undefined ? 'more' : 'less';
}

const reasonsOf = ([before = 'allowed', after = 'allowed']: Both<string | undefined>) => ({ before, after });

/** `allowed` undefined: the request is refused whoever sends it. */
function changesOf(view: View, methods: readonly string[], allowed: Both<Allowed | undefined>): readonly Change[] {
  const { mode, verdicts } = view;
  const [before, after] = verdicts;
  const nobody: Permitted = { roles: [], scopes: [] };
  const found: Change[] = [];
  for (const [i, method] of methods.entries()) {
    const [one = nobody, other = nobody] = [allowed[0]?.byMethod[i], allowed[1]?.byMethod[i]];
    if (mode !== 'own') {
      const roles = common(one.roles, other.roles);
      const scopes = intersection(one.scopes, other.scopes);
      if (roles.length > 0 && scopes?.length !== 0 && kindOf(verdicts) !== 'other')
        found.push({ kind: kindOf(verdicts), mode, method, roles, scopes, ...reasonsOf(verdicts) });
      continue;
    }
    const old = before === undefined ? one : nobody;
    const now = after === undefined ? other : nobody;
    for (const { roles, scopes, reason } of gained(old, now))
      found.push({ kind: 'more', mode, method, roles, scopes, before: before ?? reason, after: 'allowed' });
    for (const { roles, scopes, reason } of gained(now, old))
      found.push({ kind: 'less', mode, method, roles, scopes, before: 'allowed', after: after ?? reason });
    if (before !== undefined || after !== undefined) continue;
    // Roles are judged before scopes.
    const reasons = ['role_forbidden', 'scope_forbidden'] as const;
    for (const [roles, lack, [first, second]] of [
      [without(now.roles, old.roles), now.scopes, reasons],
      [without(old.roles, now.roles), old.scopes, [reasons[1], reasons[0]]],
    ] as const)
      if (roles.length > 0 && lack !== undefined)
        found.push({ kind: 'other', mode, method, roles, scopes: allBut(lack), before: first, after: second });
  }
  const [was = 'role_forbidden', is = 'role_forbidden'] = verdicts;
  if (mode === 'own' && was !== is && allowed.includes(undefined))
    found.push({ kind: 'other', mode, method: undefined, roles: undefined, scopes: undefined, before: was, after: is });
  return found;
}

interface Pairs extends Permitted {
  /** Why the other side refuses them. */
  readonly reason: string;
}

/** The pairs of a role and a scope that `now` permits and `old` does not. */
function gained(old: Permitted, now: Permitted): readonly Pairs[] {
  const pairs = [
    { roles: without(now.roles, old.roles), scopes: now.scopes, reason: 'role_forbidden' },
    { roles: common(now.roles, old.roles), scopes: scopesWithout(now.scopes, old.scopes), reason: 'scope_forbidden' },
  ];
  return pairs.filter(({ roles, scopes }) => roles.length > 0 && scopes?.length !== 0);
}

function without(names: readonly string[], others: readonly string[]): readonly string[] {
  const known = new Set(others);
  return names.filter(name => !known.has(name));
}

function common(names: readonly string[], others: readonly string[]): readonly string[] {
  const known = new Set(others);
  return names.filter(name => known.has(name));
}

function intersection(scopes: Permitted['scopes'], others: Permitted['scopes']): Permitted['scopes'] {
  return scopes === undefined ? others : others === undefined ? scopes : common(scopes, others);
}

function scopesWithout(scopes: Permitted['scopes'], others: Permitted['scopes']): Permitted['scopes'] {
  if (others === undefined) return [];
  return scopes === undefined ? allBut(others) : without(scopes, others);
}

function allBut(scopes: readonly string[]): readonly string[] | undefined {
  return scopes.length === 0 ? undefined : ['*', ...scopes.map(scope => `!${scope}`)];
}

/** `isLoose`: with the spelling of a loose segment, which is any other segment otherwise. */
function pathOf({ segments }: PathClass, other: string, special: Texts, isLoose: boolean): string {
  const texts = segments.map((segment, i) => {
    if (segment.kind === 'literal' || (segment.kind === 'loose' && isLoose)) return segment.text;
    return special.get(i) ?? other;
  });
  return `/${texts.join('/')}`;
}

/** Whether the text is any other segment there. */
function canStandAt({ segments }: PathClass, i: number, text: string): boolean {
  const segment = segments[i];
  return segment?.kind === 'other' && !segment.apartFrom.has(text);
}

/** Without what does not depend on the path: hosts, headers, query, applications, places of the token. */
function createAsker(config: Config, side: number, methods: readonly string[]): (path: string) => Asked {
  const { hosts: _, ...account } = config.account;
  const policy: Policy = toPolicy({
    ...config,
    apps: ['*'],
    account: { ...account, headers: [], query: [] },
    token: { ...config.token, from: ['authorization'] },
  });
  const allowed = new Map<string, Allowed>();
  const narrowing = new Map<Route, number>();
  // Per method: those of the names that permit it, as tokens write them.
  const claims = new Map(Array.from(config.roles, ([name, entry]) => [name, claimedNamesOf(name, entry)]));

  function allowedFor(match: RouteMatch): Allowed {
    const narrow = match.routes.flatMap(route => {
      if (route.roles === undefined && route.scopes === undefined) return [];
      const number = narrowing.get(route) ?? narrowing.size;
      narrowing.set(route, number);
      return [number];
    });
    const key = `${narrow.join()} ${[...match.grants].sort().join(' ')}`;
    const known = allowed.get(key);
    if (known !== undefined) return known;
    const { roles, scopes } = policy;
    const byMethod = methods.map(method => ({
      roles: permittedNames(roles, 'roles', method, match, Infinity).flatMap(name => claims.get(name) ?? []),
      scopes: scopes && permittedNames(scopes, 'scopes', method, match, Infinity),
    }));
    const made = { id: allowed.size * 2 + side, byMethod };
    allowed.set(key, made);
    return made;
  }

  return path => {
    const { outcome } = admit(policy, factsOf('GET', path));
    if (outcome.kind === 'refusal') return { kind: 'refused', reason: outcome.reason };
    const { match, accounts } = outcome;
    const positions = new Set(
      match.routes.flatMap(({ template }) =>
        template.segments.flatMap(({ kind }, i) => (kind === 'account' ? [i] : [])),
      ),
    );
    return { kind: 'match', accounts, positions: [...positions].sort((a, b) => a - b), allowed: allowedFor(match) };
  };
}
