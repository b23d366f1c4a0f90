// Everything that is wrong with an overlay as it is rendered. Pure, so that many mistakes can be shown to it.
import { lintBootstrap } from '../../src/envoy-lint/lint.ts';
import { agreementProblems } from './agreement.ts';
import { type Facts, factsOf, type Surroundings } from './facts.ts';
import type { Manifest } from './manifest.ts';
import { podSecurityProblems } from './pod-security.ts';
import { referenceProblems } from './references.ts';
import { certificateProblems } from './rules/certificates.ts';
import { envoyClusterProblems } from './rules/envoy-clusters.ts';
import { listeningProblems } from './rules/listening.ts';
import { mountProblems } from './rules/mounts.ts';
import { loopbackKeyProblems, networkPolicyProblems } from './rules/network-policies.ts';
import { protectedPathProblems } from './rules/protected-paths.ts';
import { accountProblems, objectReferenceProblems } from './rules/references.ts';

const rules: readonly ((facts: Facts) => readonly string[])[] = [
  ({ manifests }) => podSecurityProblems(manifests),
  ({ manifests }) => referenceProblems(manifests),
  agreementProblems,
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

function lintProblems({ bootstrap, config }: Facts): string[] {
  if (bootstrap === undefined) return [];
  return lintBootstrap(bootstrap, config).map(({ path, message }) => `${path.join('.')} ${message}`);
}
