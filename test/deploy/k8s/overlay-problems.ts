// All problems of a rendered overlay. Pure, so that tests can try many mistakes.
import type { Config } from '../../../src/config/schema.ts';
import { lintBootstrap } from '../../../src/envoy-config/lint/lint.ts';
import { type Facts, factsOf, memoized, type Surroundings } from './facts.ts';
import type { Manifest } from './manifest.ts';
import { podSecurityProblems } from './pod-security.ts';
import { certificateProblems } from './rules/certificates.ts';
import { configurationProblems } from './rules/configuration.ts';
import { envoyClusterProblems } from './rules/envoy-clusters.ts';
import { envoyGatewayProblems } from './rules/envoy-gateway.ts';
import { istioProblems } from './rules/istio.ts';
import { listeningProblems } from './rules/listening.ts';
import { mountProblems } from './rules/mounts.ts';
import { loopbackKeyProblems, networkPolicyProblems } from './rules/network-policies.ts';
import { podProblems } from './rules/pods.ts';
import { protectedPathProblems } from './rules/protected-paths.ts';
import { accountProblems, objectReferenceProblems } from './rules/references.ts';
import { selectorProblems } from './rules/selectors.ts';

const rules: readonly ((facts: Facts) => readonly string[])[] = [
  ({ manifests }) => podSecurityProblems(manifests),
  selectorProblems,
  podProblems,
  configurationProblems,
  istioProblems,
  envoyGatewayProblems,
  listeningProblems,
  networkPolicyProblems,
  loopbackKeyProblems,
  mountProblems,
  objectReferenceProblems,
  accountProblems,
  protectedPathProblems,
  envoyClusterProblems,
  certificateProblems,
  lintProblems,
];

export function overlayProblems(manifests: readonly Manifest[], surroundings: Surroundings): string[] {
  const facts = factsOf(manifests, surroundings);
  return facts === undefined ? ['the configuration is not valid'] : rules.flatMap(rule => rule(facts));
}

// The lint is slow, and most mistakes are in neither of its two inputs.
const lintOf = memoized((bootstrap: unknown) =>
  memoized((config: Config) =>
    lintBootstrap(bootstrap, config).map(({ path, message }) => `${path.join('.')} ${message}`),
  ),
);

function lintProblems({ bootstrap, config }: Facts): readonly string[] {
  return bootstrap === undefined ? [] : lintOf(bootstrap)(config);
}
