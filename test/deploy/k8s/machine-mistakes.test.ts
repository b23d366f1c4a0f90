// Generated mistakes: each value of each overlay is changed, one at a time; the schemas or a rule find it, or it is known to be harmless.
// rule-mistakes.tsv has a mistake for each rule with what the rule says of it: another rule's answer does not count.
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { Surroundings } from './facts.ts';
import { kustomizeBinary, render } from './kustomize.ts';
import type { Manifest } from './manifest.ts';
import { type Mistake, mistakesIn, mistakesInDocument } from './mistakes.ts';
import { overlayProblems } from './overlay-problems.ts';
import { createSchemaCheck } from './schemas.ts';
import { loadSurroundings } from './surroundings.ts';

/** An object in two overlays is tested in the first only; envoy-sidecar is part of the first. */
const folders = [
  'test/fixtures/k8s-variants/everything',
  'k8s/overlays/service',
  'k8s/overlays/istio',
  'k8s/overlays/envoy-gateway',
  'k8s/overlays/demo',
  'k8s/overlays/envoy-sidecar-socket',
  'test/fixtures/k8s-variants/plain',
];

/** Matches `Kind/name path mistake`. */
const harmless: readonly (readonly [mistake: RegExp, reason: string])[] = [
  [
    /Probe\.(periodSeconds|failureThreshold|timeoutSeconds) /,
    'a slightly different time, or the default of Kubernetes',
  ],
  [/(terminationGracePeriodSeconds|preStop\.sleep\.seconds) incremented/, 'a longer wait'],
  [/resources\.(requests|limits)\.[\w-]+ misspelt: \d+(m|Mi)$/, 'another size'],
  [/emptyDir\.sizeLimit misspelt: \dMi$/, 'another size'],
  [/(maxSkew|maxSurge|replicas|minReplicas|maxReplicas) incremented/, 'another number of pods'],
  [/averageValue misspelt: 601m$/, 'a slightly higher threshold'],
  [/ spec\.behavior\b/, 'the same as the default of Kubernetes'],
  [/(PodMonitor\/\S+ \S+|passive)\.interval /, 'another interval'],
  [/topologySpreadConstraints\.\d left out/, 'the other constraint stays'],
  [/ontainers\.\d\.securityContext\.(runAs\w+|seccompProfile) left out/, 'the pod sets the same'],
  [/config\.yaml (listen|admin|shutdown|shutdown\.graceSeconds) left out/, 'the default is the same'],
  [/NetworkPolicy\/\S+ \S+\.protocol left out/, 'TCP is the default'],
  [/clientCertificateRef\.kind left out/, 'Secret is the default'],
  [/backendRefs\.0\.weight /, 'it is the only one'],
  [
    /^(NetworkPolicy|DestinationRule|ServiceEntry|EnvoyFilter|AuthorizationPolicy|ClientTrafficPolicy|SecurityPolicy|BackendTLSPolicy)\/\S+ metadata\.name misspelt/,
    'nothing refers to it by its name',
  ],
  [
    /(ServiceEntry\/\S+ spec\.ports|Gateway\/\S+ spec\.listeners)\.0\.name misspelt/,
    'nothing refers to it by its name',
  ],
  [/DestinationRule\/\S+ spec\b|maxRequestsPerConnection /, 'connections end less evenly'],
  [/GatewayClass\/\S+ metadata\.namespace /, 'it is in none'],
];
/** Members that every object of the kind here has. */
const required = new RegExp(
  `^\\S+ (?:${[
    'metadata',
    'spec',
    'spec\\.ports',
    'spec\\.template\\.(?:metadata|metadata\\.labels|spec)',
    'spec\\.template\\.spec\\.topologySpreadConstraints\\.\\d\\.labelSelector',
    'spec\\.template\\.spec\\.(?:initC|c)ontainers\\.\\d\\.lifecycle\\.preStop\\.exec\\.command',
    'spec\\.(?:selector|podSelector|policyTypes|workloadSelector|metrics|podMetricsEndpoints)',
    'spec\\.configPatches(?:\\.\\d\\.patch(?:\\.value)?)?',
    'spec\\.rules(?:\\.\\d\\.(?:to(?:\\.\\d\\.operation)?|matches(?:\\.\\d\\.path(?:\\.value)?)?))?',
    'spec\\.headers(?:\\.earlyRequestHeaders)?',
    'spec\\.backendTLS(?:\\.clientCertificateRef)?',
    'spec\\.(?:extAuth|infrastructure|infrastructure\\.parametersRef|validation\\.caCertificateRefs)',
  ].join('|')}) left out$`,
);
/** Of the bootstrap, only how Envoy calls account-authz: everything else is compared with envoy.yaml as a whole. */
const copied = /\/envoy\.yaml (?!static_resources\.clusters\.0)/;

/** What rules say, by the mistake. */
const named = new Map<string, string[]>();
for (const line of readFileSync(new URL('rule-mistakes.tsv', import.meta.url), 'utf8')
  .split('\n')
  .slice(0, -1)) {
  const [mistake = '', problem = ''] = line.split('\t');
  named.set(mistake, [...(named.get(mistake) ?? []), problem]);
}

describe('k8s/: generated mistakes', function () {
  this.timeout(300_000);
  let surroundings: Surroundings;
  let schemaProblems: (manifests: readonly Manifest[]) => readonly string[];
  const made = new Set<string>();
  const excused = new Set<RegExp>();
  const unsaid: string[] = [];

  before(async function () {
    this.timeout(600_000); // the first run builds kustomize
    await kustomizeBinary();
    schemaProblems = await createSchemaCheck();
    surroundings = await loadSurroundings();
  });

  const isFound = (manifests: readonly Manifest[]): boolean =>
    schemaProblems(manifests).length > 0 || overlayProblems(manifests, surroundings).length > 0;

  // A rule that throws has found nothing, except where what is left out is required: no rule reads such an object, and no API server takes it.
  const isFoundIn = (manifests: readonly Manifest[], mistake: string): boolean => {
    try {
      return isFound(manifests);
    } catch {
      return required.test(mistake);
    }
  };

  function unseen(mistakes: readonly Mistake[], manifests: readonly Manifest[]): string[] {
    return mistakes.flatMap(({ where, what, during }) => {
      // kustomize puts a hash of the content behind the name of a ConfigMap.
      const mistake = `${where} ${what}`.replace(/-(?=[a-z]*\d)[a-z\d]{10}$/, '-HASH');
      if (made.has(mistake)) return [];
      made.add(mistake);
      const expected = named.get(mistake) ?? [];
      const said = expected.length === 0 ? [] : during(() => overlayProblems(manifests, surroundings));
      unsaid.push(...expected.filter(problem => !said.includes(problem)).map(problem => `${mistake}: ${problem}`));
      if (during(() => isFoundIn(manifests, mistake))) return [];
      const excuse = harmless.find(([pattern]) => pattern.test(mistake))?.[0];
      if (excuse === undefined) return [mistake];
      excused.add(excuse);
      return [];
    });
  }

  for (const folder of folders) {
    it(`are found in ${folder}`, async () => {
      const manifests = await render(folder);
      expect(isFound(manifests)).to.equal(false);
      const mistakes = mistakesIn(manifests).filter(({ where }) => !copied.test(where));
      expect(unseen(mistakes, manifests)).to.deep.equal([]);
    });
  }

  it('are found in the mesh configuration of istio', async () => {
    const manifests = await render('k8s/overlays/istio');
    expect(unseen(mistakesInDocument('mesh-config.yaml', surroundings.meshConfig), manifests)).to.deep.equal([]);
  });

  it('are each found by the rule that names it', () => {
    expect([...named.keys()].filter(mistake => !made.has(mistake))).to.deep.equal([]);
    expect(unsaid).to.deep.equal([]);
    expect(named.size).to.be.greaterThan(100);
  });

  it('are many, and each exception matches one of them', () => {
    expect(made.size).to.be.greaterThan(2000);
    expect(harmless.filter(([pattern]) => !excused.has(pattern))).to.deep.equal([]);
  });
});
