// Finds every dangerous setting of an Envoy bootstrap or dump for a configuration. Pure: no file, no network, no Envoy.
import type { EnvoyRelevantConfig } from '../settings.ts';
import { laterFilterRules, routeRules } from './after-check-rules.ts';
import { agreementRules, reachRules } from './agreement-rules.ts';
import { bypassRules } from './bypass-rules.ts';
import { checkRules } from './check-rules.ts';
import { hostRules } from './host-rules.ts';
import { toLintModel } from './lint-model.ts';
import { openRouteRules } from './open-route-rules.ts';
import { ProtoValue, type ValuePath } from './proto-value.ts';
import { requestRules } from './request-rules.ts';
import { readResources } from './resources.ts';
import type { Rule, Rules } from './rule.ts';
import { transportRules } from './transport-rules.ts';

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

const filterRules = { ...checkRules, ...agreementRules, ...transportRules, ...laterFilterRules };

/** Every rule by its id, in the order of docs/envoy-lint.md. */
export const lintRules: Readonly<Record<string, Pick<Rule<never>, 'what' | 'why' | 'fix'>>> = {
  ...bypassRules,
  ...reachRules,
  ...openRouteRules,
  ...hostRules,
  ...requestRules,
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

/** Returns each problem once. */
export function lintBootstrap(bootstrap: unknown, config: EnvoyRelevantConfig): readonly LintProblem[] {
  const problems = new Map<string, LintProblem>();
  const report = (rule: string, at: ProtoValue, says: string, { why, fix }: { why: string; fix: string }) => {
    const key = JSON.stringify([rule, at.path]);
    if (!problems.has(key)) problems.set(key, { rule, path: at.path, message: `${says}: ${why}; ${fix} [${rule}]` });
  };
  const judge = <Subject>(rules: Rules<Subject>, subjects: readonly Subject[]): void => {
    for (const [id, rule] of Object.entries(rules)) {
      for (const { at, says } of subjects.flatMap(rule.find)) report(id, at, says, rule);
    }
  };
  const root = new ProtoValue(bootstrap, (at, says) => report('unreadable-value', at, says, unreadable));
  for (const resources of readResources(root)) {
    const model = toLintModel(resources, config);
    const checks = model.guarded.flatMap(guarded => guarded.checks);
    const targets = model.guarded.flatMap(guarded => guarded.targets);
    judge(bypassRules, [model]);
    judge({ ...reachRules, ...openRouteRules, ...hostRules }, [model]);
    judge(requestRules, model.guarded);
    judge(filterRules, checks);
    judge(routeRules, targets);
  }
  return [...problems.values()];
}
