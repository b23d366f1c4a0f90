// The rules of the Pod Security Standard "restricted" that our pods could break, and the stricter rules of this project.
import { type Container, containersOf, type Manifest, type Pod, type Probe, podsOf } from '../../../lab/manifest.ts';

const allowedVolumes = ['configMap', 'secret', 'emptyDir', 'projected'];

export function podSecurityProblems(manifests: readonly Manifest[]): string[] {
  return podsOf(manifests).flatMap(pod => [
    ...problemsOf(pod.name, [
      [pod.spec.automountServiceAccountToken === false, 'mounts a service account token'],
      [pod.spec.enableServiceLinks === false, 'has service links'],
      [!['hostNetwork', 'hostPID', 'hostIPC', 'hostAliases'].some(key => key in pod.spec), 'shares with its host'],
      [!(pod.spec.volumes ?? []).some(volume => volumeKind(volume) === undefined), 'has a volume that is not allowed'],
    ]),
    ...containersOf(pod).flatMap(container => containerProblems(pod, container)),
  ]);
}

function containerProblems(pod: Pod, container: Container): string[] {
  // A container's setting overrides its pod's.
  const context = { ...pod.spec.securityContext, ...container.securityContext };
  const { requests = {}, limits = {} } = container.resources ?? {};
  const { startupProbe, readinessProbe, livenessProbe } = container;
  const { preStop } = container.lifecycle ?? {};
  const { capabilities } = context;
  const hosts = [startupProbe, readinessProbe, livenessProbe].flatMap(probe => hostOf(probe) ?? []);
  return problemsOf(`${pod.name}/${container.name}`, [
    [context.runAsNonRoot === true, 'may run as root'],
    [Number.isInteger(context.runAsUser) && Number(context.runAsUser) > 0, 'has no numeric user other than 0'],
    [Number.isInteger(context.runAsGroup) && Number(context.runAsGroup) > 0, 'has no numeric group other than 0'],
    [context.seccompProfile?.type === 'RuntimeDefault', 'has no seccomp profile'],
    [context.allowPrivilegeEscalation === false, 'may escalate privileges'],
    [context.privileged !== true && context.procMount === undefined, 'is privileged'],
    [context.readOnlyRootFilesystem === true, 'may write to its root'],
    [capabilities?.drop?.includes('ALL') === true && capabilities.add === undefined, 'has capabilities'],
    [!container.ports?.some(port => port.hostPort !== undefined), 'takes a port of the host'],
    [hosts.length === 0 && preStop?.httpGet?.host === undefined, 'has a probe or a hook that names a host'],
    // The container `drain` waits for its preStop hook and answers nothing.
    [
      container.name === 'drain' || [startupProbe, readinessProbe, livenessProbe].every(probe => probe !== undefined),
      'lacks a probe',
    ],
    [requests.cpu !== undefined && requests.memory !== undefined, 'requests nothing'],
    [limits.memory !== undefined, 'has no limit of memory'],
    [
      requests['ephemeral-storage'] !== undefined && limits['ephemeral-storage'] !== undefined,
      'may fill the disk of its node',
    ],
    // With a CPU limit, throttling would delay checks.
    [limits.cpu === undefined, 'has a limit of CPU'],
    [container.terminationMessagePolicy === 'FallbackToLogsOnError', 'does not report why it ended'],
    [isPinned(container.image), `runs an image that is not pinned: ${container.image}`],
  ]);
}

function problemsOf(name: string, rules: readonly (readonly [holds: boolean, problem: string])[]): string[] {
  return rules.flatMap(([holds, problem]) => (holds ? [] : [`${name} ${problem}`]));
}

function volumeKind(volume: object): string | undefined {
  return allowedVolumes.find(kind => kind in volume);
}

function hostOf(probe: Probe | undefined): string | undefined {
  return probe?.httpGet?.host ?? probe?.tcpSocket?.host;
}

function isPinned(image: string): boolean {
  return /^[a-z0-9.-]+\.[a-z]+\/[a-z0-9./-]+:[A-Za-z.-]*v?\d+\.\d+\.\d+(@sha256:[0-9a-f]{64})?$/.test(image);
}
