// The scenarios of a bench by the names that --only takes, in the order in which they run.
export const scenarioNames = [
  'calls',
  'latency',
  'connections',
  'start',
  'envoy',
  'storms',
  'memory',
  'scan',
  'replicas',
] as const;
export type ScenarioName = (typeof scenarioNames)[number];

export interface Selection {
  readonly scenarios: ReadonlySet<ScenarioName>;
  isWanted(contender: string): boolean;
}

/** Whether this choice takes in any of these contenders. */
export function mayChoose(only: readonly string[], contenders: readonly string[]): boolean {
  const isScenario = (name: string): boolean => scenarioNames.some(scenario => scenario === name);
  return only.every(isScenario) || only.some(name => contenders.includes(name));
}

/** What a quick bench takes where nothing is named. */
export const quickScenarios: readonly ScenarioName[] = ['calls', 'latency', 'start', 'envoy', 'storms'];
/** Contenders that a quick bench leaves out: each is much like another, or long in starting. */
const slowOnly: readonly string[] = [
  'known-logged',
  'known-as-shipped',
  'go-jwt-cached',
  'rego',
  'opa-cached',
  'authorino',
  'authorino-cached',
];

/** Names of contenders alone choose the scenario `calls`; names of scenarios alone choose all contenders. */
export function select(
  only: readonly string[],
  contenders: readonly string[],
  isQuick: boolean,
):
  | { readonly kind: 'selection'; readonly selection: Selection }
  | { readonly kind: 'unknown'; readonly names: readonly string[] } {
  const chosen = scenarioNames.filter(name => only.includes(name));
  const named = new Set(only.filter(name => contenders.includes(name)));
  const unknown = only.filter(name => !named.has(name) && !chosen.some(scenario => scenario === name));
  if (unknown.length > 0) return { kind: 'unknown', names: unknown };
  const all = isQuick ? quickScenarios : scenarioNames;
  const fallback: readonly ScenarioName[] = only.length === 0 ? all : ['calls'];
  return {
    kind: 'selection',
    selection: {
      scenarios: new Set(chosen.length === 0 ? fallback : chosen),
      isWanted: name => (named.size === 0 ? !(isQuick && slowOnly.includes(name)) : named.has(name)),
    },
  };
}
