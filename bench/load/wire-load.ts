// Two kinds of load over wire-client.ts: a closed loop with a constant number of calls in flight, for throughput, and an open
// loop that sends each call when it is due, whether or not earlier ones were answered, for latency (no coordinated omission).
import { cpuMicroseconds } from '../measure/process-cpu.ts';
import { type CheckVerdict, verdictOf } from './check-message.ts';
import { connectWire, type WireAnswer, type WireRequest, type WireTarget } from './wire-client.ts';

export interface RequestSet {
  readonly requests: readonly WireRequest[];
  /** True: each request is sent once, and the run ends after the last one. */
  readonly once: boolean;
  readonly expected: Expected;
}

/** The expected form of every answer: a CheckResponse, or plain HTTP. */
export type Expected = CheckVerdict | 'status 200' | 'another status';

export interface RunTarget {
  readonly target: WireTarget;
  readonly connections: number;
  readonly shared: { readonly first: Buffer; readonly later: Buffer };
  /** Warm-up before the measured time. */
  readonly warmMs: number;
  readonly measureMs: number;
  /** Processes whose CPU time is read at the start and the end of the measured time. */
  readonly pids: readonly number[];
}

export interface LaneFigures {
  readonly answered: number;
  readonly wrong: number;
  readonly failed: number;
  /** One per call: from its due time (open loop) or its send (closed loop) to its answer. */
  readonly latenciesMs: Float64Array;
}

export interface RunFigures {
  readonly elapsedMs: number;
  readonly lanes: readonly LaneFigures[];
  /** CPU time of each process, in the given order. */
  readonly cpuMicroseconds: readonly number[];
  /** CPU time of the load itself. */
  readonly loadCpuMicroseconds: number;
}

export interface Source {
  readonly set: RequestSet;
  /** Index of the next request; kept from run to run. */
  next: number;
}

// HTTP/2 header blocks that begin with `:status: 200`.
const status200 = 0x88;
const answersMs = 10_000;

export function isExpected(expected: Expected, { statusByte, message, isComplete }: WireAnswer): boolean {
  if (!isComplete) return false;
  switch (expected) {
    case 'status 200':
      return statusByte === status200;
    case 'another status':
      return statusByte !== status200;
    case 'allow':
    case 'deny':
    case 'neither':
      return message !== undefined && verdictOf(message) === expected;
  }
}

interface Tally {
  count(latencyMs: number, isRight: boolean, isComplete: boolean): void;
  figures(): LaneFigures;
}

function createTally(): Tally {
  let answered = 0;
  let wrong = 0;
  let failed = 0;
  let latencies = new Float64Array(4096);
  return {
    count(latencyMs, isRight, isComplete) {
      if (answered === latencies.length) {
        const longer = new Float64Array(latencies.length * 2);
        longer.set(latencies);
        latencies = longer;
      }
      latencies[answered++] = latencyMs;
      if (!isComplete) failed++;
      else if (!isRight) wrong++;
    },
    figures: () => ({ answered, wrong, failed, latenciesMs: latencies.slice(0, answered) }),
  };
}

/** `inFlight` concurrent calls, spread over the connections; each answer triggers the next request. */
export async function runClosedLoop(
  run: RunTarget,
  source: Source,
  inFlight: number,
  connect = connectWire,
): Promise<RunFigures> {
  const { set } = source;
  const tally = createTally();
  const sentMs = new Float64Array(inFlight);
  let measuring = false;
  let stopped = false;
  let inFlightCalls = 0;
  let ranOut: () => void;
  const empty = new Promise<void>(resolve => {
    ranOut = resolve;
  });
  const fault = createFault();

  const client = await connect({
    ...run,
    onFault: fault.raise,
    onAnswer(slot, answer, connection) {
      inFlightCalls--;
      const nowMs = performance.now();
      if (measuring) tally.count(nowMs - (sentMs[slot] ?? 0), isExpected(set.expected, answer), answer.isComplete);
      if (!stopped) sendNext(slot, connection, nowMs);
    },
  });

  function sendNext(slot: number, connection: number, nowMs: number): void {
    const request = set.requests[set.once ? source.next : source.next % set.requests.length];
    if (request === undefined) {
      ranOut();
      return;
    }
    source.next++;
    inFlightCalls++;
    sentMs[slot] = nowMs;
    client.send(connection, request, slot);
  }

  try {
    for (let slot = 0; slot < inFlight; slot++) sendNext(slot, slot % run.connections, performance.now());
    await Promise.race([wait(run.warmMs), empty, fault.raised]);
    const before = readCosts(run.pids);
    measuring = true;
    await Promise.race([wait(run.measureMs), empty, fault.raised]);
    measuring = false;
    const after = readCosts(run.pids);
    stopped = true;
    await Promise.race([until(() => inFlightCalls === 0), fault.raised]);
    return { ...costsBetween(before, after), lanes: [tally.figures()] };
  } finally {
    await client.close();
  }
}

export interface TimedLane {
  readonly source: Source;
  readonly perSecond: number;
}

/** Each lane at its rate; waits for the answers to all calls that are due within the measured time. */
export async function runOpenLoop(
  run: RunTarget,
  lanes: readonly TimedLane[],
  connect = connectWire,
): Promise<RunFigures> {
  const totalMs = run.warmMs + run.measureMs;
  const timed = lanes.map(({ source, perSecond }) => {
    const count = Math.floor((perSecond * totalMs) / 1000);
    return { source, tally: createTally(), intervalMs: 1000 / perSecond, count, sent: 0, answered: 0 };
  });
  const fault = createFault();
  let startMs = 0;
  let connection = 0;
  let done: () => void;
  const allSent = new Promise<void>(resolve => {
    done = resolve;
  });

  const client = await connect({
    ...run,
    onFault: fault.raise,
    onAnswer(tag, answer) {
      const lane = timed[tag % timed.length];
      if (lane === undefined) return;
      lane.answered++;
      const dueMs = Math.floor(tag / timed.length) * lane.intervalMs;
      if (dueMs < run.warmMs) return;
      const isRight = isExpected(lane.source.set.expected, answer);
      lane.tally.count(performance.now() - startMs - dueMs, isRight, answer.isComplete);
    },
  });

  // A timer may be a millisecond late, longer than a call takes: busy-wait, on a core of its own.
  function pump(): void {
    const nowMs = performance.now() - startMs;
    let isOver = true;
    for (const [index, lane] of timed.entries()) {
      const { set } = lane.source;
      while (lane.sent < lane.count && lane.sent * lane.intervalMs <= nowMs) {
        const request = set.requests[set.once ? lane.source.next : lane.source.next % set.requests.length];
        if (request === undefined) {
          fault.raise(new Error(`no more than ${set.requests.length} requests to send once`));
          return;
        }
        lane.source.next++;
        client.send(connection, request, lane.sent * timed.length + index);
        connection = (connection + 1) % run.connections;
        lane.sent++;
      }
      if (lane.sent < lane.count) isOver = false;
    }
    if (isOver) done();
    else setImmediate(pump);
  }

  try {
    startMs = performance.now();
    setImmediate(pump);
    await Promise.race([wait(run.warmMs), fault.raised]);
    const before = readCosts(run.pids);
    await Promise.race([allSent, fault.raised]);
    const after = readCosts(run.pids);
    const answered = until(() => timed.every(lane => lane.answered === lane.sent));
    await Promise.race([answered, fault.raised]);
    return { ...costsBetween(before, after), lanes: timed.map(lane => lane.tally.figures()) };
  } finally {
    await client.close();
  }
}

function createFault(): { readonly raised: Promise<never>; raise(error: Error): void } {
  let reject: (error: Error) => void;
  const raised = new Promise<never>((_, fail) => {
    reject = fail;
  });
  raised.catch(() => undefined);
  return { raised, raise: error => reject(error) };
}

interface Costs {
  readonly atMs: number;
  readonly own: NodeJS.CpuUsage;
  readonly cpu: readonly number[];
}

function readCosts(pids: readonly number[]): Costs {
  return { atMs: performance.now(), own: process.cpuUsage(), cpu: pids.map(pid => cpuMicroseconds(pid) ?? NaN) };
}

function costsBetween(before: Costs, after: Costs): Omit<RunFigures, 'lanes'> {
  return {
    elapsedMs: after.atMs - before.atMs,
    cpuMicroseconds: after.cpu.map((cpu, index) => cpu - (before.cpu[index] ?? 0)),
    loadCpuMicroseconds: after.own.user + after.own.system - before.own.user - before.own.system,
  };
}

function wait(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms));
}

async function until(isSo: () => boolean): Promise<void> {
  const limitMs = performance.now() + answersMs;
  while (!isSo()) {
    if (performance.now() > limitMs) throw new Error('not every call was answered');
    await wait(5);
  }
}
