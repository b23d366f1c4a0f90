// Inconsistencies between two objects of a rendered overlay, planted one at a time: a rule finds each.
import { expect } from 'chai';
import { at, type Path, type Surroundings } from './facts.ts';
import { kustomizeBinary, type Overlay, render } from './kustomize.ts';
import type { Manifest } from './manifest.ts';
import { overlayProblems } from './overlay-problems.ts';
import { loadSurroundings } from './surroundings.ts';

/** `Kind/name`, the path of a value in it, and its new value. */
type Planted = readonly [overlay: Overlay, mistake: string, object: string, path: Path, changed: unknown];

const containers: Path = ['spec', 'template', 'spec', 'containers', 0];
const secretItems: Path = ['spec', 'template', 'spec', 'volumes', 0, 'projected', 'sources', 1, 'secret', 'items'];
const owningGateway: Path = ['spec', 'ingress', 0, 'from', 0, 'podSelector', 'matchLabels'];
const client = 'account-authz/client';

const planted: readonly Planted[] = [
  ['service', 'a certificate at another path', 'Deployment/account-authz', [...secretItems, 0, 'path'], 'tls.crt'],
  ['service', 'a key in place of its certificate', 'Deployment/account-authz', [...secretItems, 0, 'key'], 'tls.key'],
  [
    'service',
    'a Secret of the other side',
    'Deployment/account-authz',
    [...secretItems.slice(0, -1), 'name'],
    'account-authz-client-tls',
  ],
  [
    'service',
    'files that no container may read',
    'Deployment/account-authz',
    [...secretItems.slice(0, 5), 'projected', 'defaultMode'],
    0o400,
  ],
  [
    'service',
    'files that everybody may read',
    'Deployment/account-authz',
    [...secretItems.slice(0, 5), 'projected', 'defaultMode'],
    0o444,
  ],
  [
    'service',
    'egress to another port than the pods have',
    'NetworkPolicy/subscriptions',
    ['spec', 'egress', 0, 'ports', 0, 'port'],
    9192,
  ],
  [
    'service',
    'ingress at another port',
    'NetworkPolicy/account-authz',
    ['spec', 'ingress', 0, 'ports', 0, 'port'],
    'authz-admin',
  ],
  [
    'service',
    'a label of the caller misspelt',
    'Deployment/subscriptions',
    ['spec', 'template', 'metadata', 'labels', client],
    'yes',
  ],
  [
    'service',
    'a label of the caller misspelt in the policy',
    'NetworkPolicy/account-authz',
    ['spec', 'ingress', 0, 'from', 0, 'podSelector', 'matchLabels'],
    { 'account-authz/clients': 'true' },
  ],
  [
    'service',
    'names that DNS cannot resolve',
    'NetworkPolicy/subscriptions',
    ['spec', 'egress', 1, 'to', 0, 'podSelector', 'matchLabels', 'k8s-app'],
    'coredns',
  ],
  [
    'service',
    'metadata addresses that can be reached',
    'NetworkPolicy/account-authz',
    ['spec', 'egress', 1, 'to', 0, 'ipBlock', 'except'],
    [],
  ],
  ['service', 'a Service with an address of its own', 'Service/account-authz', ['spec', 'clusterIP'], undefined],
  ['service', 'a Service at another port', 'Service/account-authz', ['spec', 'ports', 0, 'port'], 9192],
  ['service', 'a Service without gRPC', 'Service/account-authz', ['spec', 'ports', 0, 'appProtocol'], 'http'],
  [
    'service',
    'a bootstrap in another folder',
    'Deployment/subscriptions',
    ['spec', 'template', 'spec', 'initContainers', 1, 'volumeMounts', 0, 'mountPath'],
    '/etc/envoy-client',
  ],
  [
    'envoy-gateway',
    'a gateway of another namespace',
    'NetworkPolicy/account-authz',
    [...owningGateway, 'gateway.envoyproxy.io/owning-gateway-namespace'],
    'default',
  ],
  [
    'envoy-gateway',
    'a gateway of another name',
    'NetworkPolicy/subscriptions',
    [...owningGateway, 'gateway.envoyproxy.io/owning-gateway-name'],
    'eg',
  ],
  [
    'envoy-gateway',
    'a gateway run elsewhere',
    'NetworkPolicy/subscriptions',
    ['spec', 'ingress', 0, 'from', 0, 'namespaceSelector', 'matchLabels', 'kubernetes.io/metadata.name'],
    'envoy-gateway',
  ],
  [
    'envoy-gateway',
    'a parent in another namespace',
    'HTTPRoute/subscriptions',
    ['spec', 'parentRefs', 0, 'namespace'],
    'default',
  ],
  [
    'envoy-gateway',
    'a backend in another namespace',
    'SecurityPolicy/subscriptions',
    ['spec', 'extAuth', 'grpc', 'backendRefs', 0, 'namespace'],
    'authz',
  ],
  [
    'envoy-gateway',
    'a backend of another group',
    'HTTPRoute/subscriptions',
    ['spec', 'rules', 0, 'backendRefs', 0, 'group'],
    'apps',
  ],
  [
    'envoy-gateway',
    'TLS for a port that is not there',
    'BackendTLSPolicy/account-authz',
    ['spec', 'targetRefs', 0, 'sectionName'],
    'https',
  ],
  [
    'envoy-gateway',
    'the authority of the other side',
    'BackendTLSPolicy/account-authz',
    ['spec', 'validation', 'caCertificateRefs', 0, 'name'],
    'account-authz-tls',
  ],
  ['envoy-gateway', 'a class that is not there', 'Gateway/subscriptions', ['spec', 'gatewayClassName'], 'envoy'],
  [
    'envoy-gateway',
    'another path than the configuration has',
    'HTTPRoute/subscriptions',
    ['spec', 'rules', 0, 'matches', 0, 'path', 'value'],
    '/api/subscription',
  ],
  [
    'istio',
    'another path than the configuration has',
    'AuthorizationPolicy/account-authz',
    ['spec', 'rules', 0, 'to', 0, 'operation', 'paths'],
    ['/api', '/api/*'],
  ],
  [
    'istio',
    'an app whose port the policy does not name',
    'Deployment/subscriptions',
    [...containers, 'ports', 0, 'containerPort'],
    8002,
  ],
  [
    'demo',
    'a health port that is not listened to',
    'Deployment/subscriptions',
    [...containers, 'ports', 0, 'containerPort'],
    8009,
  ],
];

/** In files of ConfigMaps. */
const rewritten: readonly (readonly [overlay: Overlay, mistake: string, file: string, part: string, by: string])[] = [
  [
    'envoy-sidecar',
    'a route of Envoy that the configuration does not have',
    'envoy.yaml',
    '{ path_separated_prefix: /api/subscriptions }',
    '{ path_separated_prefix: /api/accounts }',
  ],
  [
    'envoy-sidecar',
    'a route of the configuration that Envoy does not have',
    'config.yaml',
    '  - path: /api/subscriptions/*\n',
    '  - path: /api/subscriptions/*\n  - path: /api/billing/*\n',
  ],
  [
    'envoy-sidecar',
    'a narrower route than that of Envoy',
    'config.yaml',
    '  - path: /api/subscriptions/*\n',
    '  - path: /api/subscriptions\n',
  ],
  [
    'envoy-sidecar-socket',
    'a socket in another folder',
    'envoy.yaml',
    '/run/account-authz/authz.sock',
    '/run/authz/authz.sock',
  ],
  [
    'service',
    'a certificate that is read elsewhere',
    'config.yaml',
    '/etc/account-authz/tls/tls.crt',
    '/etc/account-authz/tls.crt',
  ],
  [
    'service',
    'an Envoy that reads its key elsewhere',
    'client-certificate.yaml',
    '/etc/envoy-tls/tls.key',
    '/etc/envoy-tls/private.key',
  ],
  ['service', 'a certificate of another name', 'server-authority.yaml', 'name: server-authority', 'name: authority'],
  ['service', 'another name than the certificate has', 'envoy.yaml', 'exact: account-authz }', 'exact: authz }'],
  ['service', 'one address for all pods', 'envoy.yaml', 'type: STRICT_DNS', 'type: LOGICAL_DNS'],
  [
    'service',
    'a Service that is not there',
    'envoy.yaml',
    'address: account-authz, port_value',
    'address: authz, port_value',
  ],
  ['demo', 'a key URL that no container serves', 'config.yaml', '127.0.0.1:8090', '127.0.0.1:8099'],
];

describe('k8s/: an inconsistency between two objects', function () {
  this.timeout(60_000);
  let surroundings: Surroundings;

  before(async function () {
    this.timeout(600_000); // the first run builds kustomize
    await kustomizeBinary();
    surroundings = await loadSurroundings();
  });

  const problemsOf = (manifests: readonly Manifest[]): string[] => overlayProblems(manifests, surroundings);

  for (const [overlay, mistake, object, path, changed] of planted) {
    it(`is found in ${overlay}: ${mistake}`, async () => {
      const manifests = await render(`k8s/overlays/${overlay}`);
      const within = at(
        manifests.find(({ kind, metadata }) => `${kind}/${metadata.name}` === object),
        ...path.slice(0, -1),
      );
      expect(within).to.be.an(Array.isArray(within) ? 'array' : 'object');
      Object.assign(within as object, { [path.at(-1) ?? '']: changed });
      expect(problemsOf(manifests)).not.to.deep.equal([]);
    });
  }

  for (const [overlay, mistake, file, part, by] of rewritten) {
    it(`is found in ${overlay}: ${mistake}`, async () => {
      const manifests = await render(`k8s/overlays/${overlay}`);
      const data = manifests.flatMap(each => (each.data?.[file] === undefined ? [] : [each.data]))[0] ?? {};
      expect(data[file]).to.contain(part);
      data[file] = String(data[file]).replaceAll(part, by);
      expect(problemsOf(manifests)).not.to.deep.equal([]);
    });
  }
});
