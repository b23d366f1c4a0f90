// Foreign bytes for property tests: known inputs with a few edits, so that most of them get past the first parser.
import fc from 'fast-check';

export interface Edit {
  readonly at: number;
  readonly removed: number;
  readonly inserted: Uint8Array;
}

/** The number of runs; `npm run fuzz` asks for more. */
export function runs(normal: number): { readonly numRuns: number } {
  return { numRuns: Number(process.env.FUZZ_RUNS ?? normal) };
}

/** One to four edits, which insert words among other bytes. */
export function edits(words: readonly string[]): fc.Arbitrary<readonly Edit[]> {
  const inserted = fc.oneof(
    fc.constantFrom(...words).map(word => Buffer.from(word)),
    fc.uint8Array({ maxLength: 4 }),
    fc.tuple(fc.nat(255), fc.nat(64)).map(([byte, length]) => Buffer.alloc(length, byte)),
  );
  const removed = fc.oneof(fc.constantFrom(0, 1), fc.nat(64));
  return fc.array(fc.record({ at: fc.nat(1 << 20), removed, inserted }), { minLength: 1, maxLength: 4 });
}

export function withEdits(input: Buffer, changes: readonly Edit[]): Buffer {
  return changes.reduce((bytes, { at, removed, inserted }) => {
    const start = at % (bytes.length + 1);
    return Buffer.concat([bytes.subarray(0, start), inserted, bytes.subarray(start + removed)]);
  }, input);
}

export function editedBytes(known: readonly Buffer[], words: readonly string[]): fc.Arbitrary<Buffer> {
  return fc.tuple(fc.constantFrom(...known), edits(words)).map(([input, changes]) => withEdits(input, changes));
}

export function editedText(known: readonly string[], words: readonly string[]): fc.Arbitrary<string> {
  return editedBytes(
    known.map(text => Buffer.from(text)),
    words,
  ).map(bytes => bytes.toString('latin1'));
}

/** Documents with up to three members replaced or removed. */
export function editedJson(known: readonly object[], values: readonly unknown[] = []): fc.Arbitrary<Buffer> {
  const odd = [null, true, '', 0, -1, -0, 1.5, 1e308, 2 ** 53, [], {}, ['a', 'b'], '\0', '\ud800'];
  const value = fc.oneof(fc.constantFrom(undefined, ...odd, ...values), fc.jsonValue({ maxDepth: 2 }));
  const changes = fc.array(fc.tuple(fc.nat(1 << 20), value), { maxLength: 3 });
  return fc.tuple(fc.constantFrom(...known), changes).map(([document, replaced]) => {
    const copy = structuredClone(document);
    for (const [at, other] of replaced) {
      const members = membersOf(copy);
      const [owner, name] = members[at % Math.max(members.length, 1)] ?? [copy, 'x'];
      Reflect.set(owner, name, structuredClone(other));
    }
    return Buffer.from(JSON.stringify(copy));
  });
}

function membersOf(value: object): (readonly [owner: object, name: string])[] {
  return Object.entries(value).flatMap(([name, member]) => [
    [value, name] as const,
    ...(typeof member === 'object' && member !== null ? membersOf(member) : []),
  ]);
}
