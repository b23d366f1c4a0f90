// Runs a pod's containers as processes, as a kubelet would: starts sidecars in order, each after the startup probe of the previous one;
// probes readiness and liveness; on stop runs all preStop hooks at once, then sends SIGTERM to the app and to the sidecars in reverse order.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { secrets } from '../../lab/secrets.ts';
import type { Placement } from './placement.ts';
import type { PlannedContainer, PlannedProbe, PodPlan } from './pod-plan.ts';

export interface Pod {
  readonly name: string;
  readonly address: string;
  /** The address that the Service routes to. */
  readonly port: number;
  readonly containers: readonly ContainerRecord[];
  /** Failures for which a kubelet would have restarted a container, and unexpected exits. */
  readonly problems: readonly string[];
  /** Resolves once every container is ready. */
  untilReady(): Promise<void>;
  stop(): Promise<void>;
  /** Sends SIGKILL to the remaining processes; for aborted runs. */
  kill(): void;
}

/** Times in milliseconds: of the start since the creation of the pod, of the stop since its deletion. */
export interface ContainerRecord {
  readonly name: string;
  startedMs: number;
  readyMs: number;
  hookMs: number;
  terminatedMs: number;
  exitedMs: number;
  exitCode: number | string;
  killed: boolean;
}

export interface KubeletOptions {
  readonly name: string;
  readonly plan: PodPlan;
  readonly placement: Placement;
  /** Scales the durations of the preStop hooks; 1 is as in the manifests. */
  readonly pace: number;
}

interface Running {
  readonly planned: PlannedContainer;
  readonly record: ContainerRecord;
  readonly child: ChildProcess;
  readonly exited: Promise<void>;
  readonly ready: Promise<void>;
}

const project = fileURLToPath(new URL('../../', import.meta.url));
const keptOutput = 4000;

/** Resolves once every container has started by the kubelet's definition; rejects if one does not, and stops all processes. */
export async function startPod({ name, plan, placement, pace }: KubeletOptions): Promise<Pod> {
  const madeAt = performance.now();
  const running: Running[] = [];
  const problems: string[] = [];
  const ending = new AbortController();
  const kill = (): void => {
    ending.abort();
    for (const { child } of running) child.kill('SIGKILL');
  };
  process.once('exit', kill);

  const start = async (planned: PlannedContainer): Promise<void> => {
    const [program = '', ...args] = await placement.commandOf(planned);
    const child = spawn(program, args, { cwd: project, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const keep = (text: string): void => {
      secrets.show('log', text);
      output = (output + text).slice(-keptOutput);
    };
    child.stdout.setEncoding('utf8').on('data', keep);
    child.stderr.setEncoding('utf8').on('data', keep);
    const record: ContainerRecord = {
      name: planned.name,
      startedMs: 0,
      readyMs: 0,
      hookMs: 0,
      terminatedMs: 0,
      exitedMs: 0,
      exitCode: '',
      killed: false,
    };
    const exited = once(child, 'exit').then(([code, signal]) => {
      record.exitCode = code ?? signal;
      if (!ending.signal.aborted) problems.push(`${name}: ${planned.name} exited with ${record.exitCode}:\n${output}`);
    });
    const exitedEarly = exited.then(() => Promise.reject(new Error(`${planned.name} exited:\n${output}`)));
    exitedEarly.catch(() => undefined);
    const since = (): number => performance.now() - madeAt;
    let nowReady: () => void = () => undefined;
    const ready = new Promise<void>(resolve => {
      nowReady = resolve;
    });
    running.push({ planned, record, child, exited, ready });

    await Promise.race([untilStarted(planned, placement, ending.signal), exitedEarly]);
    record.startedMs = since();
    void watch(planned.readiness, placement, ending.signal, good => {
      if (good) {
        if (record.readyMs === 0) record.readyMs = since();
        nowReady();
      } else if (record.readyMs !== 0) problems.push(`${name}: ${planned.name} is no longer ready`);
    });
    void watch(planned.liveness, placement, ending.signal, good => {
      if (!good) problems.push(`${name}: ${planned.name} would have been restarted: its liveness probe fails`);
    });
  };

  try {
    for (const planned of plan.containers.filter(({ kind }) => kind === 'sidecar')) await start(planned);
    await Promise.all(plan.containers.filter(({ kind }) => kind === 'app').map(start));
  } catch (error) {
    kill();
    throw error;
  }

  return {
    name,
    address: placement.address,
    port: placement.portOf(plan.servicePort),
    containers: running.map(({ record }) => record),
    problems,
    async untilReady() {
      await Promise.all(running.map(({ ready }) => ready));
    },
    async stop() {
      ending.abort();
      await end(running, plan, placement, pace);
      process.off('exit', kill);
    },
    kill,
  };
}

// Stopping (KEP-753): all hooks start at once; SIGTERM waits for the container's own hook and, for a sidecar, also until
// everything that started after it has exited. After the grace period the remaining processes are killed.
async function end(running: readonly Running[], plan: PodPlan, placement: Placement, pace: number): Promise<void> {
  const stopAt = performance.now();
  const since = (): number => performance.now() - stopAt;
  const overdue = setTimeout(() => {
    for (const { child, record } of running) record.killed = child.kill('SIGKILL');
  }, plan.graceSeconds * 1000);
  await Promise.all(
    running.map(async ({ planned, record, child, exited }, index) => {
      await runHook(planned, placement, pace);
      record.hookMs = since();
      if (planned.kind === 'sidecar') await Promise.all(running.slice(index + 1).map(later => later.exited));
      record.terminatedMs = since();
      child.kill('SIGTERM');
      await exited;
      record.exitedMs = since();
    }),
  );
  clearTimeout(overdue);
}

async function runHook(planned: PlannedContainer, placement: Placement, pace: number): Promise<void> {
  const { preStop } = planned;
  switch (preStop.kind) {
    case 'none':
      return;
    case 'sleep':
      await delay(preStop.seconds * pace * 1000);
      return;
    case 'exec': {
      const [program = '', ...args] = placement.execOf(planned, paced(preStop.command, pace));
      await once(spawn(program, args, { cwd: project, stdio: 'ignore' }), 'exit');
      return;
    }
  }
}

/** `--seconds N` in a hook's command, scaled to whole seconds. */
function paced(command: readonly string[], pace: number): readonly string[] {
  return command.map((argument, index) =>
    command[index - 1] === '--seconds' ? String(Math.ceil(Number(argument) * pace)) : argument,
  );
}

async function untilStarted(planned: PlannedContainer, placement: Placement, signal: AbortSignal): Promise<void> {
  const { startup } = planned;
  if (startup === undefined) return;
  await new Promise<void>((resolve, reject) => {
    void watch(startup, placement, signal, good => {
      if (good) resolve();
      else reject(new Error(`${planned.name} does not pass its startup probe`));
      return 'enough';
    });
  });
}

/** Probes until aborted and reports each change of the result; a container without a probe passes. */
async function watch(
  probe: PlannedProbe | undefined,
  placement: Placement,
  signal: AbortSignal,
  // biome-ignore lint/suspicious/noConfusingVoidType: most return nothing.
  report: (good: boolean) => 'enough' | void,
): Promise<void> {
  if (probe === undefined) {
    report(true);
    return;
  }
  let verdict: boolean | undefined;
  let streak = 0;
  let last: boolean | undefined;
  await pause(probe.initialDelaySeconds, signal);
  while (!signal.aborted) {
    const good = await isGood(probe, placement);
    if (signal.aborted) return;
    streak = good === last ? streak + 1 : 1;
    last = good;
    if (good !== verdict && streak >= (good ? probe.successThreshold : probe.failureThreshold)) {
      verdict = good;
      if (report(good) === 'enough') return;
    }
    await pause(probe.periodSeconds, signal);
  }
}

async function pause(seconds: number, signal: AbortSignal): Promise<void> {
  await delay(seconds * 1000, undefined, { signal }).catch(() => undefined);
}

async function isGood({ target, timeoutSeconds }: PlannedProbe, placement: Placement): Promise<boolean> {
  const { address } = placement;
  const port = placement.portOf(target.port);
  const timeoutMs = timeoutSeconds * 1000;
  switch (target.kind) {
    case 'http': {
      const request = fetch(`http://${address}:${port}${target.path}`, { signal: AbortSignal.timeout(timeoutMs) });
      return request.then(
        async response => {
          await response.body?.cancel();
          return response.ok;
        },
        () => false,
      );
    }
    case 'tcp':
      return new Promise(resolve => {
        const socket = connect({ host: address, port, timeout: timeoutMs });
        const settle = (good: boolean) => (): void => {
          socket.destroy();
          resolve(good);
        };
        socket.once('connect', settle(true)).once('error', settle(false)).once('timeout', settle(false));
      });
  }
}
