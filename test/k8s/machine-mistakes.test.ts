// Every value of every overlay with a small mistake in it, one at a time: the schemas or a rule see it, or it is known to do no harm.
import { expect } from 'chai';
import type { Surroundings } from './facts.ts';
import { kustomizeBinary, render } from './kustomize.ts';
import type { Manifest } from './manifest.ts';
import { type Mistake, mistakesIn, mistakesInDocument } from './mistakes.ts';
import { overlayProblems } from './overlay-problems.ts';
import { createSchemaCheck } from './schemas.ts';
import { loadSurroundings } from './surroundings.ts';

/** The object of a mistake that two have in common is looked at in the first; envoy-sidecar is part of the first. */
const folders = [
  'test/fixtures/k8s-variants/everything',
  'k8s/overlays/service',
  'k8s/overlays/istio',
  'k8s/overlays/envoy-gateway',
  'k8s/overlays/demo',
  'k8s/overlays/envoy-sidecar-socket',
  'test/fixtures/k8s-variants/plain',
];

/** Of `Kind/name path what`. */
const harmless: readonly (readonly [mistake: RegExp, reason: string])[] = [
  [/Probe\.(periodSeconds|failureThreshold|timeoutSeconds) /, 'a little sooner or later, or as Kubernetes has it'],
  [/(terminationGracePeriodSeconds|preStop\.sleep\.seconds) counted up/, 'a longer wait'],
  [/resources\.(requests|limits)\.\w+ misspelt: \d+(m|Mi)$/, 'another size'],
  [/emptyDir\.sizeLimit misspelt: \dMi$/, 'another size'],
  [/(maxSkew|maxSurge|replicas|minReplicas|maxReplicas) counted up/, 'another number of pods'],
  [/averageValue misspelt: 601m$/, 'a little later'],
  [/ spec\.behavior\b/, 'Kubernetes waits as long where it is not told'],
  [/(PodMonitor\/\S+ \S+|passive)\.interval /, 'asked more or less often'],
  [/topologySpreadConstraints\.\d left out/, 'the other constraint stays'],
  [/ontainers\.\d\.securityContext\.(runAs\w+|seccompProfile) left out/, 'the pod says the same'],
  [/config\.yaml (listen|admin|shutdown|shutdown\.graceSeconds) left out/, 'the default is the same'],
  [/NetworkPolicy\/\S+ \S+\.protocol left out/, 'TCP is the default'],
  [/clientCertificateRef\.kind left out/, 'Secret is the default'],
  [/backendRefs\.0\.weight /, 'it is the only one'],
  [
    /^(NetworkPolicy|ServiceEntry|EnvoyFilter|AuthorizationPolicy|ClientTrafficPolicy|SecurityPolicy|BackendTLSPolicy)\/\S+ metadata\.name misspelt/,
    'nothing refers to it by its name',
  ],
  [
    /(ServiceEntry\/\S+ spec\.ports|Gateway\/\S+ spec\.listeners)\.0\.name misspelt/,
    'nothing refers to it by its name',
  ],
  [/GatewayClass\/\S+ metadata\.namespace /, 'it is in none'],
];
/** Of the bootstrap only how account-authz is asked: all else of it is compared with envoy.yaml as a whole. */
const copied = /\/envoy\.yaml (?!static_resources\.clusters\.0)/;

describe('k8s/: mistakes made by machine', function () {
  this.timeout(300_000);
  let surroundings: Surroundings;
  let schemaProblems: (manifests: readonly Manifest[]) => readonly string[];
  const made = new Set<string>();
  const excused = new Set<RegExp>();

  before(async function () {
    this.timeout(600_000); // kustomize is built the first time
    await kustomizeBinary();
    schemaProblems = await createSchemaCheck();
    surroundings = await loadSurroundings();
  });

  // A rule that finds nothing to read ends its test too.
  const isSeen = (manifests: readonly Manifest[]): boolean => {
    try {
      return schemaProblems(manifests).length + overlayProblems(manifests, surroundings).length > 0;
    } catch {
      return true;
    }
  };

  function unseen(mistakes: readonly Mistake[], manifests: readonly Manifest[]): string[] {
    return mistakes.flatMap(({ where, what, during }) => {
      const mistake = `${where} ${what}`;
      if (made.has(mistake)) return [];
      made.add(mistake);
      if (during(() => isSeen(manifests))) return [];
      const excuse = harmless.find(([pattern]) => pattern.test(mistake))?.[0];
      if (excuse === undefined) return [mistake];
      excused.add(excuse);
      return [];
    });
  }

  for (const folder of folders) {
    it(`are seen in ${folder}`, async () => {
      const manifests = await render(folder);
      expect(isSeen(manifests)).to.equal(false);
      const mistakes = mistakesIn(manifests).filter(({ where }) => !copied.test(where));
      expect(unseen(mistakes, manifests)).to.deep.equal([]);
    });
  }

  it('are seen in the mesh configuration of istio', async () => {
    const manifests = await render('k8s/overlays/istio');
    expect(unseen(mistakesInDocument('mesh-config.yaml', surroundings.meshConfig), manifests)).to.deep.equal([]);
  });

  it('are many, and each excuse is for one of them', () => {
    expect(made.size).to.be.greaterThan(2000);
    expect(harmless.filter(([pattern]) => !excused.has(pattern))).to.deep.equal([]);
  });
});
