// Open-loop HTTP load: requests are due at times set beforehand, whether or not earlier ones were answered, and latency counts
// from those times, so that a stall is seen by every request that it delays (no coordinated omission).
import { clockMs } from '../measure/clock.ts';
import { createHttpConnections } from './http-connections.ts';

/** One stream of requests at a rate of its own. */
export interface Lane {
  readonly name: string;
  /** The request with this number, counted from 0. */
  request(number: number): { readonly path: string; readonly headers: Readonly<Record<string, string>> };
}

export interface LoadAnswer {
  readonly lane: string;
  readonly number: number;
  /** When it was due; the start of its latency. All times are of clockMs. */
  readonly scheduledMs: number;
  /** When it was written to a connection. */
  readonly sentMs: number;
  readonly answeredMs: number;
  /** 0 where the connection failed. */
  readonly status: number;
  readonly body: string;
}

export interface LoadOptions {
  readonly origin: string;
  /** Requests under way at once; more than these wait, and their latency counts that. */
  readonly connections: number;
  readonly lanes: readonly Lane[];
  onAnswer(answer: LoadAnswer): void;
}

export interface Load {
  /** Requests a second of each lane from now on; a lane that is not named rests. */
  setRates(rates: Readonly<Record<string, number>>): void;
  /** Sends no more and resolves with the number of requests sent, once all are answered. */
  stop(): Promise<number>;
}

interface LaneState {
  readonly lane: Lane;
  intervalMs: number;
  /** Infinity while the lane rests. */
  dueMs: number;
  sent: number;
}

const idleMs = 50;

export function createLoad(options: LoadOptions): Load {
  const { host, hostname, port } = new URL(options.origin);
  const connections = createHttpConnections({ host: hostname, port: Number(port), max: options.connections });
  const states = options.lanes.map((lane): LaneState => ({ lane, intervalMs: 0, dueMs: Infinity, sent: 0 }));
  let stopped = false;
  let underWay = 0;
  let onIdle: (() => void) | undefined;
  let timer: NodeJS.Timeout | undefined;

  function pump(): void {
    if (stopped) return;
    const nowMs = clockMs();
    for (;;) {
      const state = states.reduce<LaneState | undefined>(
        (first, each) => (each.dueMs < (first?.dueMs ?? Infinity) ? each : first),
        undefined,
      );
      if (state === undefined || state.dueMs > nowMs) {
        waitFor(state === undefined ? idleMs : state.dueMs - nowMs);
        return;
      }
      const scheduledMs = state.dueMs;
      state.dueMs += state.intervalMs;
      send(state.lane, state.sent++, scheduledMs);
    }
  }

  function waitFor(waitMs: number): void {
    clearTimeout(timer);
    // A request is sent up to a millisecond late: to spin until it is due would take a core from what is measured.
    timer = setTimeout(pump, Math.max(1, waitMs));
  }

  function send(lane: Lane, number: number, scheduledMs: number): void {
    const { path, headers } = lane.request(number);
    let sentMs = scheduledMs;
    underWay++;
    const lines = Object.entries(headers).map(([header, value]) => `${header}: ${value}\r\n`);
    connections.send(
      `GET ${path} HTTP/1.1\r\nhost: ${host}\r\n${lines.join('')}\r\n`,
      () => {
        sentMs = clockMs();
      },
      ({ status, body }) => {
        underWay--;
        options.onAnswer({ lane: lane.name, number, scheduledMs, sentMs, answeredMs: clockMs(), status, body });
        if (underWay === 0) onIdle?.();
      },
    );
  }

  pump();
  return {
    setRates(rates) {
      const nowMs = clockMs();
      for (const [index, state] of states.entries()) {
        const rate = rates[state.lane.name] ?? 0;
        const intervalMs = rate > 0 ? 1000 / rate : 0;
        if (intervalMs === state.intervalMs) continue;
        state.intervalMs = intervalMs;
        // Spread, so that lanes that start together do not send together.
        state.dueMs = intervalMs === 0 ? Infinity : nowMs + (intervalMs * (index + 0.5)) / states.length;
      }
      pump();
    },
    async stop() {
      stopped = true;
      clearTimeout(timer);
      if (underWay > 0) {
        await new Promise<void>(resolve => {
          onIdle = resolve;
        });
      }
      connections.close();
      return states.reduce((sum, state) => sum + state.sent, 0);
    },
  };
}
