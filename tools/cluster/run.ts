// What the steps of a cluster run share: the deployment under load, its pods, and measuring one step.
import type { Authentication } from './authentication.ts';
import type { Deployed } from './deployments.ts';
import { type ContainerStatus, kubectl, type PodState, podsOf, until, untilSettled } from './kubectl.ts';
import type { ClusterLoad, Window } from './load.ts';
import type { NodeAgent } from './node-agent.ts';

export interface Row {
  readonly deployment: string;
  readonly what: string;
  readonly expected: string;
  readonly measured: string;
  readonly isGood: boolean;
  /** Absent where no load was measured. */
  readonly window?: Window;
}

export interface ClusterRun {
  readonly deployed: Deployed;
  readonly load: ClusterLoad;
  readonly agent: NodeAgent;
  readonly authentication: Authentication;
  add(row: Omit<Row, 'deployment'>): void;
}

export interface Outcome {
  readonly measured: string;
  readonly isGood?: boolean;
}

export interface Step {
  readonly what: string;
  readonly expected: string;
  /** Which losses are as expected; default: none. */
  readonly allows?: ((window: Window) => boolean) | undefined;
  act(): Promise<Outcome>;
  /** What the load adds to the text. */
  measured?(window: Window): string;
}

const nothing = ({ lost }: Window): boolean => Object.keys(lost).length === 0;

/** A step that fails becomes a row too, and the run goes on. */
export async function measure(
  run: ClusterRun,
  { what, expected, allows = nothing, act, measured }: Step,
): Promise<void> {
  const moment = run.load.now();
  const outcome = await act().catch((error: Error): Outcome => ({ measured: error.message, isGood: false }));
  const window = await run.load.since(moment);
  const text = [outcome.measured, measured?.(window)].filter(each => each !== undefined && each !== '').join('; ');
  run.add({ what, expected, measured: text, isGood: (outcome.isGood ?? true) && allows(window), window });
}

export const seconds = (value: number): string => `${value.toFixed(1)} s`;

export const noAnswer = ({ longestGapSeconds }: Window): string => `no answer for ${seconds(longestGapSeconds)}`;

/** Only 503, and connections that were refused or cut. */
export function only(pattern: RegExp): (window: Window) => boolean {
  return ({ lost }) => Object.keys(lost).every(what => pattern.test(what));
}

export function authzPods({ deployed }: ClusterRun): Promise<readonly PodState[]> {
  return podsOf(deployed.namespace, deployed.authz.labels);
}

export async function oneOf(pods: Promise<readonly PodState[]>): Promise<PodState> {
  const pod = (await pods).find(({ isTerminating, isReady }) => isReady && !isTerminating);
  if (pod === undefined) throw new Error('no pod is ready');
  return pod;
}

export async function settle({ deployed }: Pick<ClusterRun, 'deployed'>): Promise<void> {
  const { namespace, labels, replicas, authz } = deployed;
  await untilSettled(namespace, labels, replicas);
  if (authz.labels !== labels) await untilSettled(namespace, authz.labels, authz.replicas);
}

/** Until the container has restarted and counts as ready: the seconds since the call, and what the kubelet's back-off took of them. */
export async function untilRestarted(run: ClusterRun, before: PodState, container: string): Promise<string> {
  const startMs = performance.now();
  const restarts = statusOf(before, container)?.restartCount ?? 0;
  return until(`the restart of ${container}`, 240, async () => {
    const pod = await samePod(run, before);
    const status = statusOf(pod, container);
    if (!pod?.isReady || !status?.ready || status.restartCount <= restarts) return undefined;
    const away = seconds((performance.now() - startMs) / 1000);
    const ended = Date.parse(status.lastState?.terminated?.finishedAt ?? '');
    const started = Date.parse(status.state?.running?.startedAt ?? '');
    return `away for ${away}; restart ${status.restartCount}, begun ${(started - ended) / 1000} s after the end`;
  });
}

function statusOf(pod: PodState | undefined, container: string): ContainerStatus | undefined {
  return pod?.containers.find(({ name }) => name === container);
}

async function samePod(run: ClusterRun, { name }: PodState): Promise<PodState | undefined> {
  const { namespace, labels, authz } = run.deployed;
  const pods = [...(await podsOf(namespace, labels)), ...(await podsOf(namespace, authz.labels))];
  return pods.find(each => each.name === name);
}

/** How often the kubelet has said of this container that it restarts it for its liveness probe. */
export async function livenessKills({ deployed }: ClusterRun, { name }: PodState, container: string): Promise<number> {
  const fields = `involvedObject.name=${name},reason=Killing`;
  const get = ['get', 'events', '-n', deployed.namespace, '--field-selector', fields, '-o', 'json'];
  const { items }: { items: readonly { message: string; count?: number }[] } = JSON.parse(await kubectl(get));
  const kills = items.filter(({ message }) => message.includes(`${container} failed liveness probe`));
  return kills.reduce((sum, { count = 1 }) => sum + count, 0);
}

export function lineOf({ what, expected, measured, isGood, window }: Row): string {
  const kinds = Object.entries(window?.lost ?? {}).map(([kind, count]) => `${count} × ${kind}`);
  const load = window === undefined ? '' : `${window.requests} requests, lost ${kinds.join(', ') || '0'}`;
  const seen = [measured, load].filter(each => each !== '').join('; ');
  return `${isGood ? 'ok  ' : 'FAIL'}  ${what}: ${seen} (expected: ${expected})`;
}
