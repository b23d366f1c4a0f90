// A kustomize component that puts Envoy and account-authz as sidecars into Deployments of others.
import { dirname } from 'node:path';
import type { RenderSettings } from '../envoy-settings/settings.ts';
import { above, beside, inline, type Members, type Tree } from '../envoy-settings/tree.ts';
import { bootstrapFile } from './bootstrap.ts';
import { manifest, type RenderedFiles, renderedFile } from './rendered-files.ts';

const user = 65_532;
/** While this pod's endpoint is taken back everywhere. */
const drainSeconds = 15;
/** For the stops of the app and of Envoy, which come between the drain and the stop of account-authz. */
const otherStopsSeconds = 20;
const configFolder = '/etc/account-authz';
const envoyFolder = '/etc/envoy';
/** An emptyDir there or above would hide what the images and the ConfigMaps have; a ConfigMap takes no mount below it. */
const takenFolders = ['/app', '/nodejs', '/usr', configFolder, envoyFolder];

const probe = (get: Members, times: Members): Members => ({ httpGet: inline(get), ...times });
const startup = { periodSeconds: 1, failureThreshold: 30 };
const ready = { periodSeconds: 2, failureThreshold: 4 };
const live = {
  periodSeconds: 10,
  timeoutSeconds: 2,
  terminationGracePeriodSeconds: beside(
    5,
    'a process that hangs is killed after 5 s; without this, after those of the pod, preStop included',
  ),
};

const hardened = {
  securityContext: {
    runAsNonRoot: true,
    runAsUser: user,
    runAsGroup: user,
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: inline({ drop: ['ALL'] }),
    seccompProfile: inline({ type: 'RuntimeDefault' }),
  },
  terminationMessagePolicy: 'FallbackToLogsOnError',
};

export function kubernetesFiles(settings: RenderSettings): RenderedFiles {
  const { authz } = settings;
  const patches = [
    renderedFile('envoy-container.yaml', [envoyPatch(settings)]),
    renderedFile('account-authz.yaml', [accountAuthzPatch(settings)]),
    ...(authz.kind === 'unix' ? [renderedFile('socket.yaml', [socketPatch(dirname(authz.path))])] : []),
  ];
  const names = patches.map(({ name }) => name);
  return [
    renderedFile(
      'kustomization.yaml',
      [sidecarKustomization(settings, names)],
      [
        `Envoy in front of the app and account-authz beside it, as native sidecars (Kubernetes 1.30 or later) of ${settings.name === undefined ? 'every Deployment' : `the Deployment ${settings.name}`} with the label ${toLabelSelector(settings)}, which its Service needs too. Where none has it, kustomize says nothing, and nothing is checked: look for both containers in its output. The app listens on loopback, so that nobody bypasses Envoy.`,
      ],
    ),
    ...patches,
    bootstrapFile(settings),
    renderedFile('config.yaml', settings.configText),
  ];
}

/** A strategic merge patch for a Deployment, whatever its name. */
function podPatch(spec: Members, labels?: Members): Members {
  return manifest('apps/v1', 'Deployment', { name: 'any' }, { template: { metadata: labels && { labels }, spec } });
}

// A cached token beyond those of the default may take 768 bytes (token/verified-tokens.ts), and V8 uses half of the container's memory for its
// heap.
function memoryLimit(maxTokens: number): string {
  return `${256 + Math.ceil((Math.max(0, maxTokens - 10_000) * 6) / 1024)}Mi`;
}

function accountAuthzPatch({ authzAdmin, envoyAdminPort, graceSeconds, image, maxTokens }: RenderSettings): Members {
  const admin = 'authz-admin';
  const product = ['/nodejs/bin/node', '/app/dist/main.js'];
  const envoyAdmin = ['--envoy-admin', `http://127.0.0.1:${envoyAdminPort}`];
  const drain = [...product, 'drain', ...envoyAdmin, '--seconds', String(drainSeconds)];
  return podPatch(
    {
      terminationGracePeriodSeconds: drainSeconds + otherStopsSeconds + graceSeconds,
      initContainers: [
        {
          name: 'account-authz',
          restartPolicy: beside('Always', 'a sidecar: starts before the app, and stops after the app and Envoy'),
          image,
          args: inline(['serve', '--config', '/etc/account-authz/config.yaml', ...envoyAdmin]),
          ports: [inline({ name: admin, containerPort: authzAdmin.port })],
          lifecycle: above(
            'Drains the Envoy of this pod: its health checks fail, and each answer closes its connection. Envoy cannot do it itself: its image has no shell, and its admin is on loopback. The hooks of all containers begin together; the app and Envoy sleep as long.\nThe kubelet runs it before a liveness restart too; `serve --envoy-admin` takes it back.',
            { preStop: inline({ exec: { command: drain } }) },
          ),
          startupProbe: above(
            'Over HTTP: gRPC is on loopback or a socket, which the kubelet cannot reach.\nStartup and liveness do not depend on the authentication service; readiness does until the first keys are there.',
            probe({ path: '/livez', port: admin }, startup),
          ),
          readinessProbe: probe({ path: '/readyz', port: admin }, ready),
          livenessProbe: probe({ path: '/livez', port: admin }, live),
          resources: above(
            'A sidecar keeps about 60 MB at 200 checks a second. The limit leaves room to validate a configuration (docs/sizing.md). No CPU limit: a throttled check is late.\nEphemeral storage is for the log: the kubelet keeps at most 50 MiB of it for each container by default.',
            {
              requests: inline({ cpu: '50m', memory: '96Mi', 'ephemeral-storage': '64Mi' }),
              limits: inline({ memory: memoryLimit(maxTokens), 'ephemeral-storage': '256Mi' }),
            },
          ),
          ...hardened,
          volumeMounts: above(
            'The folder, not one file (subPath): Kubernetes never updates a file that is mounted by itself.',
            [inline({ name: 'account-authz-config', mountPath: configFolder, readOnly: true })],
          ),
        },
      ],
      volumes: [{ name: 'account-authz-config', configMap: inline({ name: 'account-authz-config' }) }],
    },
    { 'account-authz/mode': 'sidecar' },
  );
}

function envoyPatch({ listen, readinessPort, envoyImage }: RenderSettings): Members {
  const readiness = { path: '/ready', port: 'envoy-ready' };
  return podPatch({
    initContainers: [
      {
        name: 'envoy',
        restartPolicy: 'Always',
        image: envoyImage,
        args: [
          '--config-path',
          '/etc/envoy/envoy.yaml',
          beside('--concurrency', 'the default is one worker for each CPU of the node'),
          '2',
          '--disable-hot-restart',
          beside('--file-flush-interval-msec', 'the access log is at most a second late'),
          '1000',
        ],
        ports: [
          inline({ name: 'envoy-http', containerPort: listen.port }),
          inline({ name: 'envoy-ready', containerPort: readinessPort }),
        ],
        startupProbe: probe(readiness, startup),
        readinessProbe: probe(readiness, ready),
        livenessProbe: beside(
          { tcpSocket: inline({ port: 'envoy-ready' }), ...live },
          'not /ready, which says 503 during a drain',
        ),
        lifecycle: above(
          'Envoy closes everything at once on SIGTERM. Until then it serves, and account-authz drains it, so that the endpoint of this pod can disappear everywhere. All preStop hooks of a pod begin together; only SIGTERM follows the order.',
          { preStop: inline({ sleep: { seconds: drainSeconds } }) },
        ),
        resources: beside(
          {
            requests: inline({ cpu: '100m', memory: '128Mi', 'ephemeral-storage': '64Mi' }),
            limits: inline({ memory: '512Mi', 'ephemeral-storage': '512Mi' }),
          },
          'limit: fixed_heap of envoy.yaml is 80 % of it',
        ),
        ...hardened,
        volumeMounts: [inline({ name: 'account-authz-envoy', mountPath: envoyFolder, readOnly: true })],
      },
    ],
    volumes: [{ name: 'account-authz-envoy', configMap: inline({ name: 'account-authz-envoy' }) }],
  });
}

/** Whether both sidecars can share the folder of the socket. */
export function isOwnFolder(folder: string): boolean {
  const prefix = folder.endsWith('/') ? folder : `${folder}/`;
  return !takenFolders.some(taken => `${taken}/`.startsWith(prefix) || prefix.startsWith(`${taken}/`));
}

/** The folder of the socket, shared by both sidecars. */
function socketPatch(folder: string): Members {
  const mount = { name: 'account-authz-socket', mountPath: folder };
  return podPatch({
    initContainers: [
      { name: 'account-authz', volumeMounts: [inline(mount)] },
      above('Of the same user, as the socket (0660) wants; else the pod needs an fsGroup. It need not write here.', {
        name: 'envoy',
        volumeMounts: [inline({ ...mount, readOnly: true })],
      }),
    ],
    volumes: [{ name: mount.name, emptyDir: inline({ medium: 'Memory', sizeLimit: '1Mi' }) }],
  });
}

function toLabelSelector({ selector }: RenderSettings): string {
  return Object.entries(selector ?? {})
    .map(([label, value]) => `${label}=${value}`)
    .join(',');
}

function sidecarKustomization(settings: RenderSettings, patches: readonly string[]): Tree {
  const { name, namespace } = settings;
  const labelSelector = toLabelSelector(settings);
  const target = { group: 'apps', kind: 'Deployment', name, labelSelector };
  return {
    apiVersion: 'kustomize.config.k8s.io/v1alpha1',
    kind: 'Component',
    namespace,
    configMapGenerator: above(
      'With a hash in the name, so that a change rolls the pods, and a rollback restores it. Envoy reads its bootstrap once.',
      [
        { name: 'account-authz-config', files: inline(['config.yaml']) },
        { name: 'account-authz-envoy', files: inline(['envoy.yaml']) },
      ],
    ),
    patches: above(
      'Each patch adds its container before the existing ones: account-authz is the first to start and the last to stop.',
      [
        ...patches.map(path => ({ path, target: inline(target) })),
        above('The first port of the Service leads to Envoy.', {
          target: inline({ version: 'v1', kind: 'Service', labelSelector }),
          patch: '- { op: replace, path: /spec/ports/0/targetPort, value: envoy-http }\n',
        }),
      ],
    ),
  };
}
