// Decides whether memory was flat: the regression line through resident memory after the warm-up rises by no more than a bound.
import { slopeOf } from './trend.ts';

export interface SoakSample {
  /** Seconds since the start of the load. */
  readonly atSeconds: number;
  readonly residentMegabytes: number;
  /** p99 of the event-loop delay since the previous sample, from the product's own metrics. */
  readonly loopDelayMs: number;
}

/** The first part, in which the cache fills and code is compiled. */
export const warmUpShare = 0.25;
export const maxRiseMegabytes = 5;

export interface SoakVerdict {
  /** The rise of the line from the end of the warm-up to the last sample. */
  readonly riseMegabytes: number;
  readonly isFlat: boolean;
}

export function soakVerdict(samples: readonly SoakSample[]): SoakVerdict {
  const steady = steadySamples(samples);
  const slope = slopeOf(
    steady.map(({ atSeconds, residentMegabytes }) => ({ at: atSeconds, value: residentMegabytes })),
  );
  const riseMegabytes = slope * ((steady.at(-1)?.atSeconds ?? 0) - (steady[0]?.atSeconds ?? 0));
  return { riseMegabytes, isFlat: riseMegabytes <= maxRiseMegabytes };
}

export function steadySamples(samples: readonly SoakSample[]): readonly SoakSample[] {
  const endSeconds = samples.at(-1)?.atSeconds ?? 0;
  return samples.filter(({ atSeconds }) => atSeconds >= endSeconds * warmUpShare);
}
