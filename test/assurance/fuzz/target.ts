// What a fuzzed reader is, and what all of them use.
import type { Shape } from './shapes.ts';

export interface FuzzTarget {
  readonly name: TargetName;
  /** The seeds besides the corpus. Never empty. */
  readonly seeds: readonly Buffer[];
  /** Dictionary words of the reader. */
  readonly dictionary: readonly Buffer[];
  readonly maxBytes: number;
  readonly shapes: readonly Shape[];
  /** Runs of the short form. */
  readonly shortRuns: number;
  /** The kind of the outcome. Rejects on a violation. */
  run(input: Buffer): Promise<string>;
  /** An input in the form for a file, without the valid token. */
  toFile(input: Buffer): Buffer;
  fromFile(bytes: Buffer): Buffer;
}

export const targetNames = [
  ...(['check-request', 'authorization', 'compact-jws', 'identity', 'jwks', 'discovery', 'config'] as const),
];
export type TargetName = (typeof targetNames)[number];

export type Target = Omit<FuzzTarget, 'toFile' | 'fromFile'>;

export function must(condition: boolean, what: string): void {
  if (!condition) throw new Error(what);
}

export function words(...texts: readonly string[]): Buffer[] {
  return texts.map(text => Buffer.from(text));
}
