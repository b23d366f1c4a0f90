// Inputs with a repeated part: superlinear cost comes from repetition. `{n}` in the repeated part is a counter.

export interface Pattern {
  readonly head: Buffer;
  /** Repeated as often as it fits; empty: the input is head and tail only. */
  readonly pump: Buffer;
  readonly tail: Buffer;
  /** The total length, as far as head and tail permit. */
  readonly bytes: number;
}

const counter = '{n}';
const maxRepeats = 1_000_000;

export function pattern(bytes: number, head: string, pump: string, tail = ''): Pattern {
  return { head: Buffer.from(head), pump: Buffer.from(pump), tail: Buffer.from(tail), bytes };
}

const nothing = Buffer.alloc(0);

export function repeated(pump: Buffer, bytes: number, tail: Buffer = nothing): Pattern {
  return { head: nothing, pump, tail, bytes };
}

export function unrepeated(input: Buffer): Pattern {
  return { head: input, pump: nothing, tail: nothing, bytes: input.length };
}

/** Whether it repeats often enough for its cost to depend on its length. */
export function isRepeated({ head, pump, tail, bytes }: Pattern): boolean {
  return pump.length > 0 && bytes - head.length - tail.length >= 16 * pump.length;
}

/** The same with fewer repetitions. */
export function shortened(pattern: Pattern, factor: number): Pattern {
  const fixed = pattern.head.length + pattern.tail.length;
  return { ...pattern, bytes: fixed + Math.floor((pattern.bytes - fixed) / factor) };
}

export function toInput({ head, pump, tail, bytes }: Pattern): Buffer {
  const room = bytes - head.length - tail.length;
  if (pump.length === 0 || room <= 0) return Buffer.concat([head, tail]);
  if (!pump.includes(counter)) {
    return Buffer.concat([head, Buffer.alloc(Math.floor(room / pump.length) * pump.length, pump), tail]);
  }
  const [first = '', ...others] = pump.toString('latin1').split(counter);
  let text = '';
  for (let n = 0; n < maxRepeats; n += 1) {
    const next = [first, ...others].join(n.toString(36));
    if (text.length + next.length > room) break;
    text += next;
  }
  return Buffer.concat([head, Buffer.from(text, 'latin1'), tail]);
}

/** On one line, of bounded length. */
export function describePattern({ head, pump, tail, bytes }: Pattern): string {
  const parts = [quoted(head), ...(pump.length === 0 ? [] : [`${quoted(pump)} repeated`]), quoted(tail)];
  return `${parts.filter(part => part !== "''").join(' + ')}, ${bytes} bytes`;
}

function quoted(bytes: Buffer): string {
  const shown = bytes
    .subarray(0, 40)
    .toString('latin1')
    .replace(/[^ -~]|['\\]/g, character => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`);
  return `'${shown}'${bytes.length > 40 ? ` (${bytes.length} bytes)` : ''}`;
}
