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
import { findNotJudged, type NotJudged } from './not-judged.ts';
import { documentRefused, looseRoutes, openRouteRules } from './open-route-rules.ts';
import { ProtoValue, type ValuePath } from './proto-value.ts';
import { isOutbound, type Resources, readResources } from './resources.ts';
import { checkRowRules, clusterRowRules, managerRowRules } from './row-rules.ts';
import type { Rule, Rules } from './rule.ts';
import { isUnverified, speaksTls, transportRules } from './transport-rules.ts';
import { wayRules, waysOf } from './way-rules.ts';

export interface LintProblem {
  readonly rule: string;
  /** Its place in the bootstrap, also if absent. */
  readonly path: ValuePath;
  /** Printable; completes a sentence that starts with the place. */
  readonly message: string;
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
  readonly notJudged: readonly NotJudged[];
}

/** Returns each problem once. */
export function lintEnvoy(bootstrap: unknown, config: EnvoyRelevantConfig): LintResult {
  const problems = new Map<string, LintProblem>();
  const places = new Set<string>();
  const report = (rule: string, at: ProtoValue, says: string, { why, fix }: { why: string; fix: string }) => {
    const { path } = at;
    const place = JSON.stringify(path);
    const key = rule + place;
    if (problems.has(key)) return;
    problems.set(key, { rule, path, message: `${says}: ${why}; ${fix} [${rule}]` });
    places.add(place);
  };
  const judge = <Subject>(rules: Rules<Subject>, subjects: readonly Subject[]): void => {
    const all = Object.entries(rules);
    for (const subject of subjects)
      for (const [id, rule] of all) for (const { at, says } of rule.find(subject)) report(id, at, says, rule);
  };
  const isReported = (path: ValuePath): boolean => places.size > 0 && places.has(JSON.stringify(path));
  const root = new ProtoValue(bootstrap, (at, says) => report('unreadable-value', at, says, unreadable));
  let notJudged: readonly NotJudged[] = [];
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
      for (const { at, says } of rule.find(model)) if (!isReported(at.path)) report(id, at, says, rule);
    }
    notJudged = [
      notJudged,
      unjudgedAnswers(resources),
      unknownParts(resources),
      foreignChecks(model),
      unknownAddresses(model),
      looseRoutes(model),
      documentRefused(model),
    ].flat();
  }
  return { problems: [...problems.values()], notJudged: notJudged.filter(({ path }) => !isReported(path)) };
}

function unknownParts(resources: Resources): readonly NotJudged[] {
  const { bootstrap, isDump, listeners, clusters, routes, endpoints, filters } = resources;
  if (!isDump) return bootstrap === undefined ? [] : findNotJudged(bootstrap, 'config.bootstrap.v3.Bootstrap');
  // What these two lead to is in the dump.
  const leftOut = ['static_resources', 'dynamic_resources'];
  return [
    ...(bootstrap === undefined ? [] : findNotJudged(bootstrap, 'config.bootstrap.v3.Bootstrap', leftOut)),
    ...listeners
      .filter(each => !isOutbound(each, isDump))
      .flatMap(each => findNotJudged(each, 'config.listener.v3.Listener')),
    ...clusters.flatMap(each => findNotJudged(each, 'config.cluster.v3.Cluster')),
    ...[...routes.values()].flatMap(each => findNotJudged(each, 'config.route.v3.RouteConfiguration')),
    ...[...endpoints.values()].flatMap(each => findNotJudged(each, 'config.endpoint.v3.ClusterLoadAssignment')),
    ...[...filters.values()].flatMap(each => findNotJudged(each, 'config.core.v3.TypedExtensionConfig')),
  ];
}

/** Clusters on a way of which the file does not say which servers answer, and hosts beside account-authz. */
function unknownAddresses(model: LintModel): readonly NotJudged[] {
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
  const found = (all: Iterable<Cluster>, isWanted: (each: Cluster) => boolean, message: string) =>
    [...all].filter(isWanted).map(({ place: { path } }) => ({ path, message }));
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
function foreignChecks({ guarded }: LintModel): readonly NotJudged[] {
  return guarded.flatMap(foreignChecksIn).map(({ filter }) => ({
    path: filter.value.path,
    message: 'asks another authorization service, whose answers can change headers of the request',
  }));
}
