// Requests and tokens that show a difference, in the form of a case of `test`, and what the engine of each configuration answers them.
import { admit, authorize } from '../../authz/authorize.ts';
import { compileIssuerAccounts, mayClaim } from '../../authz/issuer-accounts.ts';
import { someIssuer } from '../../authz/issuer-template.ts';
import { claimedNamesOf, type PermissionTable } from '../../authz/permission.ts';
import { isAccountLabel, toHostEntries } from '../../authz/places/host-place.ts';
import { toAccountGrammar } from '../../authz/places/places.ts';
import { type Account, isAccount } from '../../authz/principal.ts';
import { toClaimRules, toPolicy } from '../../check/engine.ts';
import type { Config, IssuerConfig } from '../../config/schema.ts';
import { parsePath } from '../../json/strict-json.ts';
import { type ClaimSource, textOf } from '../../token/claim-source.ts';
import { parseIdentity } from '../../token/identity-claims.ts';
import { createIssuerFinder } from '../../token/verifier.ts';
import { tokenLines } from '../offline/check-request.ts';
import type { Both } from './path-classes.ts';
import { factsOf, type Samples, type Sent } from './permissions.ts';

/** A case of `test`, for the new configuration. */
export interface Example {
  readonly name: string;
  readonly claims: Readonly<Record<string, unknown>>;
  readonly request: {
    readonly method: string;
    readonly path: string;
    readonly host?: string;
    readonly headers?: Readonly<Record<string, string>>;
  };
  readonly expect: string;
}

export type AskedCase = Pick<Example, 'claims' | 'request'>;

export interface Caller {
  readonly sent: Sent;
  readonly method: string;
  readonly role: string | undefined;
  readonly scope: string | undefined;
  readonly app?: string;
  readonly host?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Examples {
  readonly samples: Samples;
  /** The case without its name and expectation: for a host and an application that both accept, or else the new one, or the old one. */
  toCases(caller: Caller): readonly AskedCase[];
  /** The reasons of both. */
  answers(asked: AskedCase): Both<string>;
}

/** `literals`: those of templates, in lower case, which no sample is. */
export function createExamples(configs: Both<Config>, literals: ReadonlySet<string>): Examples {
  const [before, after] = configs;
  const grammars = configs.map(({ account }) => toAccountGrammar(account));
  // Tokens of an issuer that both have, else of the first of each: a case without `iss` is of the first.
  const common = after.issuers.flatMap(issuer => {
    const old = before.issuers.find(each => each.issuer === issuer.issuer);
    return old === undefined ? [] : [[old, issuer] as const];
  });
  const [oldFirst] = before.issuers;
  const [newFirst] = after.issuers;
  const pairs: readonly (readonly IssuerConfig[])[] =
    common.length > 0 ? common : [[oldFirst, newFirst].filter(each => each !== undefined)];
  const covers = (pair: readonly IssuerConfig[], name: string): boolean =>
    pair.every(({ accounts }) => mayClaim(compileIssuerAccounts(accounts), name));
  // A literal host that an entry with the account would match too names no account.
  const labels = configs.flatMap(({ account: { hosts = [] } }) =>
    hosts.map(host => host.split('.', 1)[0]?.toLowerCase() ?? ''),
  );
  const taken = new Set([...literals, ...labels]);
  const isSound = (name: string): name is Account => grammars.every(grammar => isAccount(name, grammar));
  const free = (names: readonly string[]): readonly Account[] =>
    names.filter(isSound).filter(name => !taken.has(name.toLowerCase()));
  const candidatesOf = (pair: readonly IssuerConfig[], stem: string): readonly Account[] => {
    const entries = pair.flatMap(({ accounts }) => accounts).filter(entry => !entry.startsWith('!'));
    const named = entries.map(entry => (entry.endsWith('*') ? `${entry.slice(0, -1)}${stem}` : entry));
    const all = free([stem, `${stem}-1`, `${stem}-2`, ...named]).filter(name => covers(pair, name));
    return [...all.filter(isAccountLabel), ...all];
  };
  const found = pairs.map(pair => ({ pair, own: candidatesOf(pair, 'acme')[0] })).find(({ own }) => own !== undefined);
  const [fresh = 'acme-0' as Account] = free(['acme', 'acme-1', 'acme-2', 'acme-3']);
  const { pair, own } = { pair: found?.pair ?? pairs[0] ?? [], own: found?.own ?? fresh };
  const second = candidatesOf(pair, 'initech').find(name => name !== own);
  const [foreign = 'globex-0'] = free(['globex', 'globex-1', 'globex-2', 'globex-3']).filter(name => name !== own);
  const samples: Samples = {
    own,
    second: pair.every(({ claims }) => claims.acc !== undefined) ? second : undefined,
    foreign,
    mayClaim: account => pairs.some(each => covers(each, account)),
  };
  const places = [configs, [after], [before]].map(accepting => ({
    app: appFor(accepting.map(({ apps }) => apps)),
    host: hostFor(accepting, own),
  }));
  const { origins = [] } = after.token;
  const origin =
    origins.find(each => before.token.origins?.includes(each) ?? true) ?? origins[0] ?? before.token.origins?.[0];
  const answerers = [createAnswerer(before), createAnswerer(after)] as const;

  function toCase({ sent, method, role, scope, app = 'web', host, headers = {} }: Caller): AskedCase {
    const [first = own] = sent.accounts;
    const issuers = pairs.find(each => covers(each, first)) ?? pair;
    const [issuer] = issuers;
    const claims: Record<string, unknown> = {};
    for (const { claims: sources } of issuers) {
      write(claims, firstOf(sources.uid), 'alice', first);
      write(claims, firstOf(sources.app), app, first);
      if (sources.acc !== undefined)
        write(claims, sources.acc, sent.accounts.length > 1 ? sent.accounts : first, first);
      if (role !== undefined) write(claims, sources.role, role, first);
      if (scope !== undefined) write(claims, sources.scope, scope, first);
    }
    const isFirst = issuer === oldFirst && issuers[1] === newFirst && issuer?.claims.acc !== undefined;
    const iss =
      common.length === 0 || isFirst || issuer === undefined ? {} : { iss: someIssuer(issuer.issuer, [first]) };
    // `test` makes the issuer of a case without `iss` for its `acc`.
    if (Object.keys(iss).length === 0 && issuers.some(each => each.claims.acc === undefined)) claims.acc ??= first;
    const usesCookie = configs.some(({ token }) => typeof token.from[0] === 'object' && 'cookie' in token.from[0]);
    const all = { ...(usesCookie && origin !== undefined && { origin }), ...headers };
    return {
      claims: { ...iss, ...claims },
      request: {
        method,
        path: sent.path,
        ...(host !== undefined && { host }),
        ...(Object.keys(all).length > 0 && { headers: all }),
      },
    };
  }

  return {
    samples,
    toCases: caller => places.map(place => toCase({ ...place, ...caller })),
    answers: asked => [answerers[0](asked), answerers[1](asked)],
  };
}

function appFor(lists: readonly (readonly string[])[]): string {
  const accepted = (name: string): boolean => lists.every(apps => apps.includes('*') || apps.includes(name));
  return [...lists.flat(), 'web'].find(name => name !== '*' && accepted(name)) ?? 'web';
}

/** Literal ones first: they name no account. */
function hostFor(configs: readonly Config[], own: string): string | undefined {
  const lists = configs.flatMap(({ account: { hosts, parameter } }) => {
    if (hosts === undefined) return [];
    const entries = toHostEntries(hosts, parameter);
    const literal = entries.flatMap(entry => (entry.kind === 'literal' ? entry.host : []));
    return [[...literal, ...entries.flatMap(entry => (entry.kind === 'literal' ? [] : `${own}${entry.parent}`))]];
  });
  return lists.at(-1)?.find(host => lists.every(hosts => hosts.includes(host)));
}

/** What a verified token with these claims gets. */
export function createAnswerer(config: Config): (asked: AskedCase) => string {
  const policy = toPolicy(config);
  const grammar = toAccountGrammar(config.account);
  const issuers = createIssuerFinder(
    config.issuers.map(issuer => ({ rules: toClaimRules(issuer, policy, grammar) })),
    grammar,
  );
  return ({ claims, request: { method, path, host, headers = {} } }) => {
    const lines = [...Object.entries(headers), ...(host === undefined ? [] : [['host', host] as const])];
    const facts = factsOf(method, path, [...tokenLines(config.token, 'Bearer token', lines), ...lines]);
    const { outcome } = admit(policy, facts);
    if (outcome.kind === 'refusal') return outcome.reason;
    // As `test` fills it in.
    const [first] = config.issuers;
    const accounts = typeof claims.acc === 'string' ? [claims.acc] : (first?.accounts ?? []);
    const iss = typeof claims.iss === 'string' ? claims.iss : someIssuer(first?.issuer ?? '', accounts);
    const rules = issuers.get(iss)?.rules;
    const identity = rules && parseIdentity({ iss, ...claims }, rules);
    if (identity === undefined) return 'token_invalid';
    if ('reason' in identity) return identity.reason;
    const { decision } = authorize(policy, outcome, identity, () => undefined);
    return decision.kind === 'allow' ? 'allowed' : decision.reason;
  };
}

/** Writes values where a source reads them. */
function write(
  claims: Record<string, unknown>,
  source: ClaimSource,
  value: string | readonly string[],
  account: string,
): void {
  const path = (parsePath(textOf(source)) ?? []).map(segment => (segment === '{acc}' ? account : segment));
  const values = typeof value === 'string' ? [value] : value;
  if (typeof source === 'object' && 'keysOf' in source) {
    const inner = 'having' in source ? { [account]: {} } : {};
    const target = path.reduce(memberFor, claims);
    for (const name of values) if (target[name] === undefined) target[name] = inner;
    return;
  }
  const target = path.slice(0, -1).reduce(memberFor, claims);
  const isWords = typeof source === 'object' && 'wordsOf' in source;
  target[path.at(-1) ?? ''] = isWords ? values.join('by' in source ? ',' : ' ') : value;
}

/** Of several sources, the first that the token has counts. */
function firstOf(source: string | readonly string[]): string {
  return typeof source === 'string' ? source : (source[0] ?? '');
}

function memberFor(object: Record<string, unknown>, name: string): Record<string, unknown> {
  const known = object[name];
  if (typeof known === 'object' && known !== null) return known as Record<string, unknown>;
  const made: Record<string, unknown> = {};
  object[name] = made;
  return made;
}

/** A text that no configuration has as a name of the table. */
export function unknownName(configs: Both<Config>, kind: 'roles' | 'scopes'): string {
  const known = new Set(configs.flatMap(config => claimedNames(config[kind])));
  let name = 'nobody';
  while (known.has(name)) name += '1';
  return name;
}

export function claimedNames(table: PermissionTable | undefined): readonly string[] {
  return [...(table ?? [])].flatMap(([name, entry]) => claimedNamesOf(name, entry));
}
