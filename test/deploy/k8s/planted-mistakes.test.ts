// Mistakes planted in a rendered overlay, one at a time. Each row names the problems that must be found: another rule's answer does not
// count. machine-mistakes.test.ts changes every value; these rows hold the rules that no change of one value reaches alone.
import { expect } from 'chai';
import { parse } from 'yaml';
import { at, type Path, type Surroundings } from './facts.ts';
import { kustomizeBinary, render } from './kustomize.ts';
import type { Manifest } from './manifest.ts';
import { overlayProblems } from './overlay-problems.ts';
import { createSchemaCheck } from './schemas.ts';
import { loadSurroundings, meshConfigText } from './surroundings.ts';

/** The changes under `overlay Kind/name` or `overlay FILE`. */
type Changes<Change> = Readonly<Record<string, readonly Change[]>>;

const podSpec: Path = ['spec', 'template', 'spec'];
const authz: Path = [...podSpec, 'initContainers', 0];
const envoy: Path = [...podSpec, 'initContainers', 1];
const app: Path = [...podSpec, 'containers', 0];
const secretItems: Path = [...podSpec, 'volumes', 0, 'projected', 'sources', 1, 'secret', 'items'];

const changedObjects: Changes<readonly [path: Path, changed: unknown, ...problems: string[]]> = {
  'envoy-sidecar Deployment/subscriptions': [
    [[...authz, 'securityContext', 'runAsUser'], 0, 'subscriptions/account-authz has no numeric user other than 0'],
    [[...envoy, 'securityContext', 'capabilities'], { add: ['NET_ADMIN'] }, 'subscriptions/envoy has capabilities'],
    [[...podSpec, 'hostNetwork'], true, 'subscriptions shares with its host'],
    [[...authz, 'livenessProbe', 'httpGet', 'path'], '/readyz', 'an outage of the keys ends account-authz'],
    [[...authz, 'readinessProbe', 'httpGet', 'path'], '/livez', 'account-authz is asked before it has keys'],
    [
      [...envoy, 'livenessProbe'],
      { httpGet: { path: '/ready', port: 'envoy-ready' } },
      'the liveness probe of subscriptions/envoy fails during a drain',
    ],
    [
      [...envoy, 'resources', 'limits', 'memory'],
      '128Mi',
      'subscriptions/envoy has a heap that does not fit its limit',
    ],
    [[...envoy, 'volumeMounts', 0, 'subPath'], 'envoy.yaml', 'subscriptions/envoy mounts what is never updated'],
    [
      [...app, 'args'],
      ['demo/serve.ts', 'upstream', '--listen', '0.0.0.0:8000'],
      'subscriptions/app can be reached past Envoy, or not at all',
      'Envoy forwards somewhere else than the app listens',
    ],
  ],
  'envoy-sidecar-socket Deployment/subscriptions': [
    [
      [...authz, 'name'],
      'envoy',
      'account-authz is not the first of subscriptions',
      'subscriptions has a container twice',
    ],
    [[...app, 'env'], [{ name: 'A' }, { name: 'A' }], 'subscriptions/app sets a variable twice'],
    [
      [...app, 'ports'],
      [
        { name: 'app', containerPort: 8000, protocol: 'UDP' },
        { name: 'app', containerPort: 8001, hostPort: 80 },
      ],
      'subscriptions/app has two ports of one name',
      'subscriptions/app has a port that is not TCP',
      'subscriptions/app takes a port of the host',
    ],
    [
      [...envoy, 'volumeMounts', 0],
      { name: 'account-authz-socket', mountPath: '/etc/envoy/socket' },
      'subscriptions/envoy mounts in a mount',
    ],
    [
      [...podSpec, 'volumes', 0],
      { name: 'account-authz-envoy', configMap: { name: 'account-authz-envoy' } },
      'subscriptions has a volume twice',
    ],
    [[...app, 'securityContext', 'privileged'], true, 'subscriptions/app is privileged'],
    [[...app, 'livenessProbe', 'httpGet', 'host'], 'x', 'subscriptions/app has a probe or a hook that names a host'],
    [[...app, 'resources', 'limits', 'cpu'], '1', 'subscriptions/app has a limit of CPU'],
  ],
  'envoy-sidecar-socket Namespace/subscriptions': [[['kind'], 'Namespaces', 'there must be one Namespace']],
  'envoy-sidecar Service/subscriptions': [
    [['spec', 'ports', 0, 'targetPort'], 'app', 'Service/subscriptions leads to app, which is no port'],
  ],
  'envoy-gateway EnvoyProxy/subscriptions': [
    [['spec', 'routingType'], undefined, 'Envoy Gateway reaches account-authz by its pods'],
  ],
  'envoy-gateway Service/account-authz': [
    [['spec', 'clusterIP'], 'None', 'Envoy Gateway reaches account-authz by its pods'],
  ],
  'service Deployment/account-authz': [
    [['spec', 'replicas'], 3, 'account-authz has no number of replicas of its own, or a second one'],
    [[...secretItems, 0, 'key'], 'tls.key', 'account-authz has no certificate with its key'],
    [
      [...secretItems.slice(0, -1), 'name'],
      'account-authz-client-tls',
      'account-authz takes no certificate of the client',
      'the client takes no certificate of account-authz',
    ],
    [
      [...secretItems.slice(0, 5), 'projected', 'defaultMode'],
      0o400,
      'volume account-authz of account-authz cannot be read',
    ],
    [
      [...secretItems.slice(0, 5), 'projected', 'defaultMode'],
      0o444,
      'volume account-authz of account-authz can be read by everybody',
    ],
  ],
  'service NetworkPolicy/subscriptions': [
    [
      ['spec', 'egress', 0, 'ports', 0, 'port'],
      9192,
      'subscriptions may send to pods of account-authz TCP/9192',
      'subscriptions may not send to pods of account-authz TCP/9191',
    ],
  ],
  'service Service/account-authz': [
    [['spec', 'clusterIP'], undefined, 'cluster account-authz takes Service/account-authz for one host'],
    [
      ['spec', 'ports', 0, 'appProtocol'],
      'http',
      'Service/account-authz names another protocol than is spoken at authz-grpc',
    ],
  ],
  'istio AuthorizationPolicy/account-authz': [
    [
      ['spec', 'rules', 0, 'to', 0, 'operation', 'paths'],
      ['/api/subscriptions/*'],
      'a path under the protected one is not asked about',
    ],
  ],
  'envoy-gateway SecurityPolicy/subscriptions': [
    [
      ['spec', 'extAuth', 'grpc', 'backendSettings', 'healthCheck', 'active'],
      {},
      'Envoy Gateway has active health checks',
    ],
    [['spec', 'extAuth', 'statusOnError'], undefined, 'SecurityPolicy has statusOnError other than envoy.yaml'],
    [
      ['spec', 'extAuth', 'headersToExtAuth'],
      ['authorization'],
      'Envoy Gateway does not show account-authz x-account-id',
    ],
  ],
  'envoy-gateway HTTPRoute/subscriptions': [
    [
      ['spec', 'parentRefs', 0, 'namespace'],
      'elsewhere',
      'HTTPRoute/subscriptions parentRefs.0 names Gateway/subscriptions, which is not there',
    ],
  ],
};

const another = 'the configuration protects another workload than demo/compose/account-authz/config.yaml';
const changedFiles: Changes<readonly [part: string, by: string, ...problems: string[]]> = {
  'envoy-sidecar config.yaml': [
    ['127.0.0.1:9191', '127.0.0.1:9195', 'Envoy calls another address than account-authz listens on'],
    ['listen: 127.0.0.1:9191', 'listenInsecure: true\nlisten: 0.0.0.0:9191', 'listen leaves the pod'],
    ['jwksUrl: https://', 'jwksUrl: https://other.', 'the keys of https://auth.example.com are those of another'],
    [
      '[x-account-id]',
      '[x-account-id, x-tenant-id]',
      another,
      'Envoy does not show account-authz what names an account',
    ],
    [
      'shutdown:',
      'identityHeaders: x-id-\nshutdown:',
      another,
      'Envoy lets clients set our headers',
      'Envoy refuses what account-authz sets',
    ],
    ['graceSeconds: 10', 'graceSeconds: 60', 'subscriptions is killed before it has stopped'],
  ],
  'service config.yaml': [
    ['listen: 0.0.0.0:9191', 'listen: 127.0.0.1:9191', 'listen cannot be reached'],
    ['clientCaFile:', '# clientCaFile:', 'account-authz takes calls without a certificate'],
  ],
  'envoy-sidecar envoy.yaml': [
    ['^(x[-_]auth[-_].*|authorization)$', '.*', 'the bootstrap is not envoy.yaml', 'Envoy lets too much be set'],
    ['port_value: 9901', 'port_value: 9902', 'drain finds no admin of Envoy'],
    [
      '- endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: 9191',
      '- {}\n              - endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: 9191',
      'cluster account-authz has a second address',
    ],
    [
      'address: 127.0.0.1, port_value: 8000',
      'address: 127.0.0.1, port_value: 8008',
      'Envoy forwards somewhere else than the app listens',
    ],
  ],
  'demo config.yaml': [['127.0.0.1:8090', '127.0.0.1:8099', 'no container serves keys at port 8099']],
  'service envoy.yaml': [
    [
      'transport_socket: #',
      'x: #',
      'account-authz is asked in another way than envoy.yaml or components/mutual-tls does',
      'Envoy speaks TLS where account-authz does not, or the reverse',
    ],
  ],
};

describe('k8s/: a planted mistake', () => {
  let surroundings: Surroundings;
  let schemaProblems: (manifests: readonly Manifest[]) => readonly string[];

  before(async function () {
    this.timeout(600_000); // the first run builds kustomize
    await kustomizeBinary();
    surroundings = await loadSurroundings();
    schemaProblems = await createSchemaCheck();
  });

  for (const [overlay, object, [path, changed, ...problems]] of rowsOf(changedObjects)) {
    it(`is found in ${overlay}: ${problems[0]}`, async () => {
      const manifests = await render(`k8s/overlays/${overlay}`);
      const within = at(
        manifests.find(({ kind, metadata }) => `${kind}/${metadata.name}` === object),
        ...path.slice(0, -1),
      );
      expect(within).to.be.an(Array.isArray(within) ? 'array' : 'object');
      Object.assign(within as object, { [path.at(-1) ?? '']: changed });
      expect(overlayProblems(manifests, surroundings)).to.include.members(problems);
    });
  }

  for (const [overlay, file, [part, by, ...problems]] of rowsOf(changedFiles)) {
    it(`is found in ${overlay}: ${problems.at(-1)}`, async () => {
      const manifests = await render(`k8s/overlays/${overlay}`);
      const data = manifests.flatMap(each => (each.data?.[file] === undefined ? [] : [each.data]))[0] ?? {};
      expect(data[file]).to.contain(part);
      data[file] = String(data[file]).replaceAll(part, () => by);
      expect(overlayProblems(manifests, surroundings)).to.include.members(problems);
    });
  }

  it('is found in istio: what is not asked about is not refused', async () => {
    const manifests = await render('k8s/overlays/istio');
    const left = manifests.filter(({ metadata }) => metadata.name !== 'nothing-else');
    expect(overlayProblems(left, surroundings)).to.include('what is not asked about is not refused');
  });

  it('is found in the mesh configuration of istio', async () => {
    const manifests = await render('k8s/overlays/istio');
    const meshConfig: unknown = parse(meshConfigText.replace('name: account-authz\n', 'name: authz\n'));
    const problems = overlayProblems(manifests, { ...surroundings, meshConfig });
    expect(problems).to.have.members(['no policy calls account-authz', 'the mesh configuration is not what was tried']);
  });

  it('is found by the schemas: a kind that is not there, a field that is misspelt', async () => {
    const manifests = await render('k8s/overlays/envoy-gateway');
    manifests.push({ apiVersion: 'v1', kind: 'Pood', metadata: { name: 'x' } });
    Object.assign(
      at(
        manifests.find(({ kind }) => kind === 'SecurityPolicy'),
        'spec',
        'extAuth',
      ) as object,
      { failOpn: true },
    );
    const problems = schemaProblems(manifests).join('\n');
    expect(problems).to.contain('Pood/x: no such kind: v1 Pood');
    expect(problems).to.match(/^SecurityPolicy\/subscriptions: \/spec\/extAuth must NOT have additional properties/m);
  });
});

function rowsOf<Change>(changes: Changes<Change>): readonly (readonly [overlay: string, place: string, Change])[] {
  return Object.entries(changes).flatMap(([key, rows]) => {
    const [overlay = '', place = ''] = key.split(' ');
    return rows.map(row => [overlay, place, row] as const);
  });
}
