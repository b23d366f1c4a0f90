// Every overlay of k8s/ as kustomize renders it: valid, hardened, and consistent with the configuration, Envoy and the code. Each rule
// is tested with mistakes that it must find.
import { expect } from 'chai';
import { parse } from 'yaml';
import { runCommand } from '../../support/command.ts';
import type { Surroundings } from './facts.ts';
import { kustomizeBinary, overlays, render } from './kustomize.ts';
import {
  type Container,
  containersOf,
  type Manifest,
  ofKind,
  type Pod,
  podsOf,
  type Specs,
  withoutHash,
} from './manifest.ts';
import { layOutFiles, type MountedFiles } from './mounted-files.ts';
import { overlayProblems } from './overlay-problems.ts';
import { createSchemaCheck } from './schemas.ts';
import { loadSurroundings, meshConfigText } from './surroundings.ts';

const folders: Readonly<Record<string, string>> = {
  ...Object.fromEntries(overlays.map(name => [name, `k8s/overlays/${name}`])),
  'the plain form': 'test/fixtures/k8s-variants/plain',
  'every component': 'test/fixtures/k8s-variants/everything',
};

const tlsOfConfig = `tls: # changed files are picked up
  certFile: /etc/account-authz/tls/tls.crt
  keyFile: /etc/account-authz/tls/tls.key
  clientCaFile: /etc/account-authz/tls/ca.crt # whoever calls must show a certificate of it
`;

type Rule = 'the schemas' | 'check-config' | 'the rules';

describe('k8s/', function () {
  this.timeout(60_000);
  const rendered = new Map<string, Manifest[]>();
  let schemaProblems: (manifests: readonly Manifest[]) => string[];
  let surroundings: Surroundings;

  before(async function () {
    this.timeout(600_000); // the first run builds kustomize
    await kustomizeBinary();
    schemaProblems = await createSchemaCheck();
    surroundings = await loadSurroundings();
    await Promise.all(Object.entries(folders).map(async ([name, folder]) => rendered.set(name, await render(folder))));
  });

  const manifestsOf = (name: string): Manifest[] => structuredClone(rendered.get(name) ?? []);

  async function problemsOf(rule: Rule, manifests: readonly Manifest[], changed: Partial<Surroundings> = {}) {
    switch (rule) {
      case 'the schemas':
        return schemaProblems(manifests);
      case 'the rules':
        return overlayProblems(manifests, { ...surroundings, ...changed });
      case 'check-config': {
        const files = await layOutFiles(manifests);
        try {
          return await checkConfigProblems(files);
        } finally {
          await files.remove();
        }
      }
    }
  }

  for (const name of Object.keys(folders)) {
    describe(name, () => {
      for (const rule of ['the schemas', 'check-config', 'the rules'] as const) {
        it(`has no problem with ${rule}`, async () => {
          expect(await problemsOf(rule, manifestsOf(name))).to.deep.equal([]);
        });
      }

      it('rolls its pods when a mounted file has changed', () => {
        const configMaps = manifestsOf(name).filter(({ kind }) => kind === 'ConfigMap');
        expect(configMaps).not.to.deep.equal([]);
        for (const { metadata } of configMaps) expect(metadata.name).not.to.equal(withoutHash(metadata.name));
      });
    });
  }

  it('uses each of its components', () => {
    const used = new Set([...rendered.values()].flat().map(({ kind }) => kind));
    expect([...used]).to.include.members([
      'HorizontalPodAutoscaler',
      'PodMonitor',
      'NetworkPolicy',
      'PodDisruptionBudget',
    ]);
  });

  // Mistakes that a rule must find.

  const pod = (manifests: Manifest[], name = 'subscriptions'): Pod =>
    found(podsOf(manifests).find(each => each.name === name));
  const container = (manifests: Manifest[], name: string): Container =>
    found(
      podsOf(manifests)
        .flatMap(containersOf)
        .find(each => each.name === name),
    );
  const specOf = <Kind extends keyof Specs>(manifests: Manifest[], kind: Kind): Specs[Kind] =>
    found(ofKind(manifests, kind)[0]).spec;
  const configMap = (manifests: Manifest[], name: string): Record<string, string> =>
    found(manifests.find(({ kind, metadata }) => kind === 'ConfigMap' && withoutHash(metadata.name) === name)?.data);
  const edit = (manifests: Manifest[], name: string, file: string, part: string, by: string): void => {
    const data = configMap(manifests, name);
    expect(data[file]).to.contain(part);
    data[file] = found(data[file]).replaceAll(part, by);
  };
  const editConfig = (manifests: Manifest[], part: string, by: string): void =>
    edit(manifests, 'account-authz-config', 'config.yaml', part, by);
  const editEnvoy = (manifests: Manifest[], part: string, by: string): void =>
    edit(manifests, 'account-authz-envoy', 'envoy.yaml', part, by);

  const mistakes: readonly (readonly [
    rule: Rule,
    overlay: string,
    mistake: string,
    make: (manifests: Manifest[]) => unknown,
  ])[] = [
    [
      'the schemas',
      'envoy-sidecar',
      'a misspelt probe',
      m => Object.assign(container(m, 'envoy'), { readnessProbe: {} }),
    ],
    [
      'the schemas',
      'envoy-sidecar',
      'a grpc probe of a named port',
      m => {
        container(m, 'envoy').livenessProbe = Object.assign({}, { grpc: { port: 'envoy-ready' as unknown as number } });
      },
    ],
    [
      'the schemas',
      'envoy-sidecar',
      'an unknown kind',
      m => m.push({ apiVersion: 'v1', kind: 'Pood', metadata: { name: 'x' } }),
    ],
    [
      'the schemas',
      'envoy-sidecar',
      'an old version of a kind',
      m => Object.assign(found(ofKind(m, 'PodDisruptionBudget')[0]), { apiVersion: 'policy/v1beta1' }),
    ],
    [
      'the schemas',
      'istio',
      'a misspelt field of Istio',
      m => Object.assign(specOf(m, 'AuthorizationPolicy').rules[0]?.to[0]?.operation ?? {}, { notPath: ['/x'] }),
    ],
    [
      'the schemas',
      'envoy-gateway',
      'a misspelt field of Envoy Gateway',
      m => Object.assign(specOf(m, 'SecurityPolicy').extAuth, { failOpn: true }),
    ],
    [
      'the schemas',
      'every component',
      'a misspelt field of a PodMonitor',
      m => Object.assign(specOf(m, 'PodMonitor'), { podMetricEndpoints: [] }),
    ],
    [
      'the rules',
      'envoy-sidecar',
      'user 0',
      m => {
        found(container(m, 'account-authz').securityContext).runAsUser = 0;
      },
    ],
    [
      'the rules',
      'envoy-sidecar',
      'a capability',
      m => {
        found(container(m, 'envoy').securityContext).capabilities = { drop: ['ALL'], add: ['NET_ADMIN'] };
      },
    ],
    [
      'the rules',
      'envoy-sidecar',
      'a host in a probe',
      m => {
        found(container(m, 'account-authz').livenessProbe?.httpGet).host = '127.0.0.1';
      },
    ],
    [
      'the rules',
      'envoy-sidecar',
      'a hostPath',
      m => {
        pod(m).spec.volumes?.push(Object.assign({ name: 'x' }, { hostPath: { path: '/' } }));
      },
    ],
    [
      'the rules',
      'envoy-sidecar',
      'the network of the host',
      m => {
        pod(m).spec.hostNetwork = true;
      },
    ],
    [
      'the rules',
      'envoy-sidecar',
      'an image without a version',
      m => {
        container(m, 'account-authz').image = 'ghcr.io/account-authz/account-authz:latest';
      },
    ],
    [
      'the rules',
      'service',
      'a CPU limit',
      m => {
        container(m, 'account-authz').resources = {
          requests: { cpu: '1', memory: '1Mi' },
          limits: { cpu: '1', memory: '1Mi' },
        };
      },
    ],

    [
      'the rules',
      'envoy-sidecar',
      'a mount of nothing',
      m => {
        container(m, 'envoy').volumeMounts?.push({ name: 'x', mountPath: '/x' });
      },
    ],
    [
      'the rules',
      'envoy-sidecar',
      'a mounted file',
      m => {
        found(container(m, 'envoy').volumeMounts?.[0]).subPath = 'envoy.yaml';
      },
    ],
    [
      'the rules',
      'service',
      'a mount in a mount',
      m => {
        container(m, 'account-authz').volumeMounts?.push({
          name: 'account-authz',
          mountPath: '/etc/account-authz/tls',
        });
      },
    ],
    [
      'the rules',
      'envoy-sidecar',
      'a Service past Envoy',
      m => {
        found(specOf(m, 'Service').ports[0]).targetPort = 'app';
      },
    ],
    [
      'the rules',
      'envoy-sidecar',
      'a policy with a port that is not there',
      m => {
        specOf(m, 'NetworkPolicy').ingress?.push({ ports: [{ port: 'https' }] });
      },
    ],
    [
      'the rules',
      'envoy-sidecar',
      'no disruption budget',
      m =>
        m.splice(
          m.findIndex(({ kind }) => kind === 'PodDisruptionBudget'),
          1,
        ),
    ],
    [
      'the rules',
      'service',
      'two that set the replicas',
      m => {
        found(ofKind(m, 'Deployment').find(({ metadata }) => metadata.name === 'account-authz')).spec.replicas = 3;
      },
    ],

    ['check-config', 'envoy-sidecar', 'an unknown key', m => editConfig(m, 'roles:\n  owner', 'rolls:\n  owner')],
    ['check-config', 'envoy-sidecar', 'keys without TLS', m => editConfig(m, 'jwksUrl: https:', 'jwksUrl: http:')],
    ['check-config', 'service', 'no TLS', m => editConfig(m, tlsOfConfig, '')],
    ['check-config', 'service', 'a certificate that is not there', m => editConfig(m, 'tls.crt', 'tls.pem')],

    [
      'check-config',
      'envoy-sidecar',
      'an Envoy that fails open',
      m => editEnvoy(m, 'failure_mode_allow: false', 'failure_mode_allow: true'),
    ],
    [
      'check-config',
      'envoy-sidecar',
      'escaped slashes accepted',
      m =>
        editEnvoy(
          m,
          'path_with_escaped_slashes_action: REJECT_REQUEST',
          'path_with_escaped_slashes_action: KEEP_UNCHANGED',
        ),
    ],
    [
      'check-config',
      'envoy-sidecar-socket',
      'an outage that looks like a refusal',
      m => editEnvoy(m, 'status_on_error:', '# status_on_error:'),
    ],
    [
      'check-config',
      'service',
      'a timeout left out',
      m => editEnvoy(m, 'timeout: 0.5s # for all', '# timeout: 0.5s # for all'),
    ],
    [
      'check-config',
      'demo',
      'a header of an account that is hidden',
      m => editConfig(m, '[x-account-id]', '[x-account-id, x-tenant-id]'),
    ],

    [
      'the rules',
      'envoy-sidecar',
      'an admin that the kubelet cannot reach',
      m => editConfig(m, 'admin: 0.0.0.0:9192', 'admin: 127.0.0.1:9192'),
    ],
    ['the rules', 'envoy-sidecar', 'another port of listen', m => editConfig(m, '127.0.0.1:9191', '127.0.0.1:9195')],
    [
      'the rules',
      'envoy-sidecar',
      'a listen that leaves the pod',
      m => editConfig(m, 'listen: 127.0.0.1:9191', 'listenInsecure: true\nlisten: 0.0.0.0:9191'),
    ],
    [
      'the rules',
      'envoy-sidecar',
      'an account header that Envoy does not show',
      m => editConfig(m, '[x-account-id]', '[x-account-id, x-tenant-id]'),
    ],
    [
      'the rules',
      'envoy-sidecar',
      'another identity prefix',
      m => editConfig(m, 'shutdown:', 'identityHeaders: x-id-\nshutdown:'),
    ],
    [
      'the rules',
      'envoy-sidecar',
      'a longer stop than the pod has',
      m => editConfig(m, 'graceSeconds: 10', 'graceSeconds: 60'),
    ],
    [
      'the rules',
      'envoy-sidecar',
      'Envoy before account-authz',
      m => {
        pod(m).spec.initContainers?.reverse();
      },
    ],
    [
      'the rules',
      'envoy-sidecar',
      'a liveness that ends a drain',
      m => {
        container(m, 'envoy').livenessProbe = { httpGet: { path: '/ready', port: 'envoy-ready' } };
      },
    ],
    [
      'the rules',
      'envoy-sidecar',
      'a limit below the heap',
      m => {
        found(container(m, 'envoy').resources).limits = { memory: '256Mi' };
      },
    ],
    [
      'the rules',
      'envoy-sidecar',
      'an app that can be reached past Envoy',
      m => {
        container(m, 'app').args = ['demo/serve.ts', 'upstream', '--listen', '0.0.0.0:8000'];
      },
    ],
    [
      'the rules',
      'envoy-sidecar',
      'an upstream elsewhere',
      m => editEnvoy(m, 'address: 127.0.0.1, port_value: 8000', 'address: 127.0.0.1, port_value: 8008'),
    ],
    [
      'the rules',
      'envoy-sidecar',
      'an account header that is not allowed',
      m => editEnvoy(m, '- exact: x-account-id', '- exact: x-account'),
    ],
    [
      'the rules',
      'envoy-sidecar',
      'an Envoy that lets clients set our headers',
      m => editEnvoy(m, 'x[^a-z0-9]auth[^a-z0-9].*', 'x-forged-.*'),
    ],
    ['the rules', 'envoy-sidecar-socket', 'a socket elsewhere', m => editConfig(m, 'authz.sock', 'other.sock')],
    [
      'the rules',
      'envoy-sidecar-socket',
      'a socket that cannot be made',
      m => {
        found(
          container(m, 'account-authz').volumeMounts?.find(({ mountPath }) => mountPath.startsWith('/run')),
        ).readOnly = true;
      },
    ],
    ['the rules', 'service', 'callers without a certificate', m => editConfig(m, 'clientCaFile:', '# clientCaFile:')],
    ['the rules', 'service', 'an Envoy without TLS', m => editEnvoy(m, 'transport_socket: #', 'x: #')],
    [
      'the rules',
      'istio',
      'a path that is not asked about',
      m => {
        found(specOf(m, 'AuthorizationPolicy').rules[0]?.to[0]).operation.paths = ['/api/subscriptions/*'];
      },
    ],
    [
      'the rules',
      'istio',
      'no refusal of all else',
      m =>
        m.splice(
          m.findIndex(({ metadata }) => metadata.name === 'nothing-else'),
          1,
        ),
    ],
    [
      'the rules',
      'envoy-gateway',
      'an outage that looks like a refusal',
      m => {
        delete specOf(m, 'SecurityPolicy').extAuth.statusOnError;
      },
    ],
    [
      'the rules',
      'envoy-gateway',
      'an account header that is not shown',
      m => {
        specOf(m, 'SecurityPolicy').extAuth.headersToExtAuth = ['authorization'];
      },
    ],
    [
      'the rules',
      'envoy-gateway',
      'underscores accepted',
      m => {
        specOf(m, 'ClientTrafficPolicy').headers.withUnderscoresAction = 'Allow';
      },
    ],
    [
      'the rules',
      'envoy-gateway',
      'escaped slashes accepted',
      m => {
        delete specOf(m, 'ClientTrafficPolicy').path.escapedSlashesAction;
      },
    ],
  ];

  describe('finds a mistake', () => {
    for (const [rule, overlay, mistake, make] of mistakes) {
      it(`${rule}: ${mistake} in ${overlay}`, async () => {
        const manifests = manifestsOf(overlay);
        await make(manifests);
        expect(await problemsOf(rule, manifests)).not.to.deep.equal([]);
      });
    }

    for (const [part, by] of [
      ['statusOnError:', 'statusOnErorr:'],
      ['failOpen: false', 'failOpen: true'],
      ['timeout: 0.5s', ''],
      ['DECODE_AND_MERGE_SLASHES', 'BASE'],
      ['name: account-authz\n', 'name: authz\n'],
    ] as const) {
      it(`the rules: ${by.trim() || `no ${part}`} in the mesh configuration of istio`, async () => {
        expect(meshConfigText).to.contain(part);
        const meshConfig: unknown = parse(meshConfigText.replace(part, by));
        expect(await problemsOf('the rules', manifestsOf('istio'), { meshConfig })).not.to.deep.equal([]);
      });
    }
  });
});

/** Standard error of the command, given Envoy's bootstrap if there is one. */
async function checkConfigProblems({ config, bootstrap }: MountedFiles): Promise<string[]> {
  const args = ['--config', config, ...(bootstrap === undefined ? [] : ['--envoy', bootstrap])];
  const { code, stderr } = await runCommand('check-config', args);
  const problems = stderr === '' ? [] : [stderr];
  return code === 0 ? problems : [`exit code ${code}`, ...problems];
}

function found<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the place for the mistake is not there');
  return value;
}
