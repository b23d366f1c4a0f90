// Results of a bench with made-up figures, any part replaced.
import type { BenchResults, CallRound, EnvoyRound, LatencyRound, MemoryRound } from '../../../bench/speed/results.ts';

export function callRound(perSecond: number, cpuMicrosecondsPerCall = 1_000_000 / perSecond): CallRound {
  return { perSecond, cpuMicrosecondsPerCall, serverShare: 1, loadShare: 0.1, residentMegabytes: 100 };
}

export function latencyRound(p99Ms: number): LatencyRound {
  return { meanMs: p99Ms / 4, p50Ms: p99Ms / 5, p99Ms, p999Ms: p99Ms * 2 };
}

export function envoyRound(perSecond: number, meanMs: number): EnvoyRound {
  return { perSecond, cpuMicrosecondsPerRequest: 1_000_000 / perSecond, meanMs, p50Ms: meanMs, p99Ms: meanMs * 3 };
}

export function memoryRound(residentMegabytes: number, liveMegabytes: number): MemoryRound {
  return { residentMegabytes, liveMegabytes };
}

/** Every floor is met. */
export function results(changes: Partial<BenchResults> = {}): BenchResults {
  return {
    run: {
      isWhole: true,
      rounds: 1,
      algorithm: 'RS256',
      requestBytes: 1200,
      pinned: true,
      node: '20.20.2',
      nodeOptions: [],
      go: '1.26.8',
      envoy: '1.40.0',
      calls: { connections: 4, inFlight: 64 },
      storm: { knownPerSecond: 1000, stormPerSecond: 2000 },
    },
    contenders: [
      { name: 'nothing', title: 'does nothing & <more>', family: 'floor' },
      { name: 'known', title: 'account-authz, one known token', family: 'product' },
      { name: 'opa', title: 'opa-envoy-plugin', family: 'peer' },
    ],
    absent: [{ name: 'authorino', title: 'Authorino', reason: 'needs a cluster' }],
    calls: {
      nothing: [callRound(10_000)],
      known: [callRound(20_000)],
      'known-logged': [callRound(20_000)],
      new: [callRound(9000)],
      garbage: [callRound(21_000)],
      'go-jwt': [callRound(12_000)],
      opa: [callRound(2000)],
    },
    latency: {
      known: { '1000': [latencyRound(0.5)], '3000': [latencyRound(0.7)] },
      opa: { '1000': [latencyRound(5)] },
    },
    connections: { known: { '1': [{ ...callRound(20_000), p99Ms: 0.4 }] } },
    start: { known: [400] },
    envoy: {
      'envoy-known': [envoyRound(6000, 0.5)],
      'envoy-go-nothing': [envoyRound(8000, 0.4)],
      'envoy-opa': [envoyRound(1500, 1)],
    },
    storms: { quiet: [latencyRound(1)], forged: [latencyRound(2)], new: [latencyRound(2)] },
    memory: { known: [memoryRound(120, 30)], rotation: [memoryRound(130, 38)] },
    scan: { 'scan-within': [{ hotHitShare: 1 }] },
    replicas: { '1': [{ perSecond: 20_000, residentMegabytes: 120, keyFetches: 1 }] },
    ...changes,
  };
}
