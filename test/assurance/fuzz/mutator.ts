// Mutates inputs: small changes of bytes, dictionary words, and pieces of other inputs. Deterministic by seed.
import type { Shape } from './shapes.ts';

/** Integers from 0 to below the limit. */
export type Random = (limit: number) => number;

/** A 32-bit generator (mulberry32): fast and portable. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  return limit => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  };
}

export interface Material {
  /** Never empty. */
  readonly corpus: readonly Buffer[];
  readonly dictionary: readonly Buffer[];
  readonly maxBytes: number;
  readonly shapes: readonly Shape[];
}

type Change = (input: Buffer, random: Random, material: Material) => Buffer;

const interesting = [
  0x00, 0x01, 0x09, 0x0a, 0x0d, 0x20, 0x22, 0x2c, 0x2e, 0x2f, 0x3d, 0x5c, 0x7b, 0x7f, 0x80, 0xc0, 0xff,
];

const changes: readonly Change[] = [
  (input, random) => withByte(input, random, byte => byte ^ (1 << random(8))),
  (input, random) => withByte(input, random, () => random(256)),
  (input, random) => withByte(input, random, () => interesting[random(interesting.length)] ?? 0),
  (input, random) => withByte(input, random, byte => byte + (random(2) === 0 ? 1 : -1)),
  (input, random) => inserted(input, random, Buffer.of(random(256))),
  (input, random) => inserted(input, random, Buffer.alloc(1 + random(64), random(256))),
  (input, random, { dictionary }) => inserted(input, random, pick(dictionary, random)),
  (input, random, { dictionary }) => overwritten(input, random, pick(dictionary, random)),
  (input, random) => {
    const [from, to] = range(input, random);
    return Buffer.concat([input.subarray(0, from), input.subarray(to)]);
  },
  (input, random) => input.subarray(0, random(input.length + 1)),
  (input, random) => {
    const [from, to] = range(input, random);
    return inserted(input, random, input.subarray(from, to));
  },
  (input, random, { corpus }) => {
    const other = pick(corpus, random);
    return Buffer.concat([input.subarray(0, random(input.length + 1)), other.subarray(random(other.length + 1))]);
  },
  (input, random, { corpus }) => {
    const other = pick(corpus, random);
    const [from, to] = range(other, random);
    return overwritten(input, random, other.subarray(from, to));
  },
];

/** A few changes at once, usually one or two; usually keeps the form of the input. */
export function mutate(input: Buffer, random: Random, material: Material): Buffer {
  const { shapes, maxBytes } = material;
  let mutated = input;
  for (let rest = 1 + random(1 + random(4)); rest > 0; rest -= 1) {
    const change = (part: Buffer): Buffer => pick(changes, random)(part, random, material);
    const shaped = random(4) !== 0 ? pick(shapes, random)(mutated, random, change) : undefined;
    mutated = shaped ?? change(mutated);
  }
  return Buffer.from(mutated.subarray(0, maxBytes));
}

export function pick<Item>(items: readonly Item[], random: Random): Item {
  const item = items[random(items.length)];
  if (item === undefined) throw new Error('nothing to pick from');
  return item;
}

function withByte(input: Buffer, random: Random, change: (byte: number) => number): Buffer {
  if (input.length === 0) return input;
  const copy = Buffer.from(input);
  const at = random(copy.length);
  copy.writeUInt8(change(copy.readUInt8(at)) & 0xff, at);
  return copy;
}

function inserted(input: Buffer, random: Random, piece: Buffer): Buffer {
  const at = random(input.length + 1);
  return Buffer.concat([input.subarray(0, at), piece, input.subarray(at)]);
}

function overwritten(input: Buffer, random: Random, piece: Buffer): Buffer {
  const at = random(input.length + 1);
  return Buffer.concat([input.subarray(0, at), piece, input.subarray(at + piece.length)]);
}

function range(input: Buffer, random: Random): [from: number, to: number] {
  const from = random(input.length + 1);
  return [from, from + random(Math.min(input.length - from, 64) + 1)];
}
