// Whether memory was flat: the line through the resident memory after warm-up rises by no more than a bound from end to end.
import { slopeOf } from '../measure/trend.ts';

export interface SoakSample {
  /** Seconds since the load began. */
  readonly atSeconds: number;
  readonly residentMegabytes: number;
  /** p99 of the event loop's delay since the sample before, as the product's own metrics tell it. */
  readonly loopDelayMs: number;
}

/** The first part, in which the cache fills and the code is compiled. */
export const warmUpShare = 0.25;
export const mostRiseMegabytes = 5;

export interface SoakVerdict {
  /** Of the line, from the end of the warm-up to the last sample. */
  readonly riseMegabytes: number;
  readonly isFlat: boolean;
}

export function soakVerdict(samples: readonly SoakSample[]): SoakVerdict {
  const judged = judgedSamples(samples);
  const slope = slopeOf(
    judged.map(({ atSeconds, residentMegabytes }) => ({ at: atSeconds, value: residentMegabytes })),
  );
  const riseMegabytes = slope * ((judged.at(-1)?.atSeconds ?? 0) - (judged[0]?.atSeconds ?? 0));
  return { riseMegabytes, isFlat: riseMegabytes <= mostRiseMegabytes };
}

export function judgedSamples(samples: readonly SoakSample[]): readonly SoakSample[] {
  const endSeconds = samples.at(-1)?.atSeconds ?? 0;
  return samples.filter(({ atSeconds }) => atSeconds >= endSeconds * warmUpShare);
}
