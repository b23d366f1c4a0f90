// Finds every dangerous setting of an Envoy bootstrap or dump for a configuration. Pure: no file, no network, no Envoy.
import { toListenAddress } from '../../text/listen-address.ts';
import type { EnvoyRelevantConfig } from '../envoy-settings/settings.ts';
import { laterRules, routeRules } from './after-check-rules.ts';
import { agreementRules, reachRules } from './agreement-rules.ts';
import { answerRules, unjudgedAnswers } from './answer-rules.ts';
import { bypassRules } from './bypass-rules.ts';
import { checkRules } from './check-rules.ts';
import { type Cluster, isAt, isLocal } from './cluster.ts';
import { headerRules } from './header-rules.ts';
import { foreignChecksIn, type LintModel, openTargetsOf, toLintModel } from './lint-model.ts';
import { readHeaderWays } from './mutations.ts';
import { findNotJudged } from './not-judged.ts';
import { documentRefused, looseRoutes, openRouteRules } from './open-route-rules.ts';
import { ProtoValue, type ValuePath } from './proto-value.ts';
import { isOutbound, type Resources, readResources } from './resources.ts';
import { checkRowRules, clusterRowRules, managerRowRules } from './row-rules.ts';
import type { Finding, Rule, Rules } from './rule.ts';
import { isUnverified, speaksTls, transportRules } from './transport-rules.ts';
import { wayRules, waysOf } from './way-rules.ts';

export interface Remark {
  /** Its place in the bootstrap, also if absent. */
  readonly path: ValuePath;
  /** Printable; completes a sentence that starts with the place. */
  readonly message: string;
  /** How many it stands for, unless it is one. */
  readonly count?: number;
}

export interface LintProblem extends Remark {
  readonly rule: string;
}

/** Reported when a rule cannot read a value. */
const unreadable = {
  what: 'A value that the lint needs and cannot read: a wrong type, two spellings of one field, a pattern that RE2 does not support',
  why: 'the lint cannot check it',
  fix: 'write it as the documentation of Envoy does; a pattern must have no look-around and no back references',
} as const;

const filterRules = {
  ...checkRowRules,
  ...checkRules,
  ...agreementRules,
  ...clusterRowRules,
  ...transportRules,
};
const managerRules = { ...managerRowRules, ...laterRules };

/** Every rule by its id, in the order of docs/envoy-lint.md. */
export const lintRules: Readonly<Record<string, Pick<Rule<never>, 'what' | 'why' | 'fix'>>> = {
  ...bypassRules,
  ...wayRules,
  ...answerRules,
  ...reachRules,
  ...openRouteRules,
  ...headerRules,
  ...managerRules,
  ...filterRules,
  ...routeRules,
  'unreadable-value': unreadable,
  // Reported by the reader of the file.
  'unreadable-file': {
    what: 'A file that is missing, empty, neither YAML nor JSON, nested deeper than 64 levels, or that sets a key twice',
    why: 'the lint cannot tell how Envoy reads it',
    fix: 'correct what the message names, and write each key once',
  },
};

export interface LintResult {
  readonly problems: readonly LintProblem[];
  /** What is neither known to be harmless nor among the problems. */
  readonly notJudged: readonly Remark[];
}

/** Of each rule, and of each reason not to judge: nobody reads more, and 16 MiB can have millions. */
const maxListed = 10_000;

/** Lists each place once for each kind. */
function createList() {
  const listed = new Map<string, LintProblem>();
  const further = new Map<string, LintProblem>();
  const counts = new Map<string, number>();
  const places = new Set<string>();
  // A number for each key, since a long one may be around thousands of places.
  const numbers = new Map<string, number>();
  const placeOf = ({ path }: ProtoValue): string =>
    path.map(key => (typeof key === 'number' ? key : `:${numberOf(key)}`)).join();
  const numberOf = (key: string): number => {
    const found = numbers.get(key) ?? numbers.size;
    numbers.set(key, found);
    return found;
  };
  // Most places are known by their last part not to be among them.
  const ends = new Set<string | number>();
  return {
    all: (): readonly LintProblem[] => [...listed.values(), ...further.values()],
    hasPlace: (at: ProtoValue): boolean => ends.has(at.key) && places.has(placeOf(at)),
    add(rule: string, at: ProtoValue, message: string): void {
      const listedOfRule = counts.get(rule) ?? 0;
      if (listedOfRule === maxListed) {
        const count = (further.get(rule)?.count ?? 0) + 1;
        further.set(rule, {
          rule,
          path: [],
          message: `has more such places than the ${maxListed} listed: ${message}`,
          count,
        });
        return;
      }
      const { path } = at;
      const place = placeOf(at);
      if (listed.has(rule + place)) return;
      listed.set(rule + place, { rule, path, message });
      counts.set(rule, listedOfRule + 1);
      places.add(place);
      ends.add(at.key);
    },
  };
}

/** Returns each problem once. */
export function lintEnvoy(bootstrap: unknown, config: EnvoyRelevantConfig): LintResult {
  const [problems, notJudged] = [createList(), createList()];
  const report = (rule: string, { at, says }: Finding, { why, fix }: { why: string; fix: string }) =>
    problems.add(rule, at, `${says}: ${why}; ${fix} [${rule}]`);
  const judge = <Subject>(rules: Rules<Subject>, subjects: readonly Subject[]): void => {
    const all = Object.entries(rules).map(([id, rule]) => ({ id, rule, seen: new WeakSet<readonly Finding[]>() }));
    for (const subject of subjects)
      for (const { id, rule, seen } of all) {
        const found = rule.find(subject);
        // Many subjects share what is found.
        if (found.length === 0 || seen.has(found)) continue;
        for (const each of found) report(id, each, rule);
        seen.add(found);
      }
  };
  // Its reason says what it is; the name of a type before that is any text.
  const remark = ({ at, says }: Finding): void => {
    if (!problems.hasPlace(at)) notJudged.add(says.slice(says.lastIndexOf(': ')), at, says);
  };
  const root = new ProtoValue(bootstrap, (at, says) => report('unreadable-value', { at, says }, unreadable));
  for (const resources of readResources(root)) {
    const model = toLintModel(resources, config);
    const checks = model.guarded.flatMap(guarded => guarded.checks);
    const targets = model.guarded.flatMap(guarded => guarded.manager.protectedTargets);
    judge(bypassRules, [model]);
    judge({ ...reachRules, ...openRouteRules }, [model]);
    judge(managerRules, model.guarded);
    judge(filterRules, checks);
    judge(routeRules, targets);
    for (const { manager } of model.guarded) judge(routeRules, openTargetsOf(model, manager));
    judge(headerRules, readHeaderWays(model));
    // After the rules about single places, which say more.
    for (const [id, rule] of Object.entries({ ...wayRules, ...answerRules })) {
      for (const found of rule.find(model)) if (!problems.hasPlace(found.at)) report(id, found, rule);
    }
    for (const found of unjudgedAnswers(resources)) remark(found);
    findUnknownParts(resources, remark);
    const others = [foreignChecks, unknownAddresses, looseRoutes, documentRefused];
    for (const found of others.flatMap(find => find(model))) remark(found);
  }
  return { problems: problems.all(), notJudged: notJudged.all() };
}

function findUnknownParts(resources: Resources, report: (found: Finding) => void): void {
  const { bootstrap, isDump, listeners, clusters, routes, endpoints, filters } = resources;
  const find = (message: string, all: Iterable<ProtoValue>, leftOut?: readonly string[]): void => {
    for (const each of all) findNotJudged(each, message, report, leftOut);
  };
  // What these two of a dump lead to is in the dump itself.
  const leftOut = isDump ? ['static_resources', 'dynamic_resources'] : [];
  find('config.bootstrap.v3.Bootstrap', bootstrap === undefined ? [] : [bootstrap], leftOut);
  if (!isDump) return;
  const inbound = listeners.filter(each => !isOutbound(each, isDump));
  find('config.listener.v3.Listener', inbound);
  find('config.cluster.v3.Cluster', clusters);
  find('config.route.v3.RouteConfiguration', routes.values());
  find('config.endpoint.v3.ClusterLoadAssignment', endpoints.values());
  find('config.core.v3.TypedExtensionConfig', filters.values());
}
/** Clusters on a way of which the file does not say which servers answer, and hosts beside account-authz. */
function unknownAddresses(model: LintModel): readonly Finding[] {
  const { listen } = model.config;
  const checks = model.guarded.flatMap(({ checks: all }) => all.flatMap(({ cluster }) => cluster ?? []));
  const clusters = new Set([
    ...waysOf(model).flatMap(({ at }) => model.clusters.get(at.text() ?? '') ?? []),
    ...checks,
  ]);
  const keepsDestinations = model.resources.listeners.some(each => each.field('use_original_dst').flag() === true);
  const isMixed = (each: Cluster): boolean => each.keys.size > 1 && isAt(each, listen) === true;
  const isOther = (each: Cluster): boolean =>
    isAt(each, listen) === undefined && isLocal(toListenAddress(listen)) && each.keys.size > 0 && !speaksTls(each);
  const found = (all: Iterable<Cluster>, isWanted: (each: Cluster) => boolean, says: string) =>
    [...all].filter(isWanted).map(({ place: at }) => ({ at, says }));
  return [
    ...found(
      clusters,
      each =>
        each.isElsewhere || (each.keepsDestination && !(keepsDestinations && model.protectedClusters.has(each.name))),
      'leads where a control plane says: its addresses are not in the file',
    ),
    ...found(new Set(checks), isMixed, 'stands beside other hosts, which decide about requests too'),
    ...found(new Set(checks), isOther, `leads to a name, and account-authz listens on this machine alone`),
    ...found(clusters, isUnverified, 'speaks TLS with any server that has a certificate of its authorities'),
  ];
}

/** An ext_authz that asks another service than account-authz. */
function foreignChecks({ guarded }: LintModel): readonly Finding[] {
  return guarded.flatMap(foreignChecksIn).map(({ filter }) => ({
    at: filter.value,
    says: 'asks another authorization service, whose answers can change headers of the request',
  }));
}
