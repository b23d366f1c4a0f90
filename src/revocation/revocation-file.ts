// Reads the file of a revocation list (JSON Lines) into an index, or gives every problem with its line. It works on the main thread,
// a few milliseconds at a time.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { loadInSlices, type UnreadableFile } from '../files/bounded-file.ts';
import { type EntryProblem, type EntryProblems, lineProblem, parseRevocation } from './revocation-entry.ts';
import { createRevocationList, type Revocation, type RevocationList } from './revocation-list.ts';

export interface LineProblem extends EntryProblem {
  /** Counts from 1. */
  readonly line: number;
}

export type LoadedRevocations =
  | { readonly kind: 'revocations'; readonly list: RevocationList }
  /** Never empty. */
  | { readonly kind: 'problems'; readonly problems: readonly LineProblem[] }
  | UnreadableFile;

const maxEntries = 100_000;
const maxLineBytes = 1024;
/** The longest list with its line ends, and room for comments. */
const maxFileBytes = 128 * 1024 * 1024;
const maxProblems = 100;

// Between two turns, calls are answered. An entry takes about 3 µs.
const maxLinesInATurn = 512;
/** A look at the clock costs as much as a comment does. */
const linesBetweenLooks = 16;
const maxTurnMs = 2;

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const numberSign = 0x23;
const byteOrderMark = Buffer.from('\ufeff');

/** Reads a regular file only. Rejects only on an internal error. `onEntry` gets each valid entry: the list keeps digests of long ones. */
export async function loadRevocations(
  file: string,
  onEntry: (entry: Revocation) => void = () => undefined,
): Promise<LoadedRevocations> {
  const list = createRevocationList();
  const problems: LineProblem[] = [];
  let line = 0;
  let linesInTurn = 0;
  let turnStartedMs = performance.now();
  /** The beginning of a line whose end has not been read. */
  let begun: Buffer = Buffer.alloc(0);
  let skipsToLineEnd = false;

  function report(problem: EntryProblem): void {
    if (problems.length < maxProblems) problems.push({ line, ...problem });
    else if (problems.length === maxProblems) problems.push({ line, message: 'more problems are not listed' });
  }

  function readLine(bytes: Buffer, start: number, end: number): void {
    // A file may have millions of comments: no object is made for one.
    if (bytes[start] === numberSign) return;
    const stop = bytes[end - 1] === carriageReturn ? end - 1 : end;
    if (start >= stop) return;
    const ended = bytes.subarray(start, stop);
    const entry = parseLine(ended);
    if (entry.kind === 'revocation') {
      list.add(entry);
      onEntry(entry);
    } else for (const problem of entry.problems) report(problem);
  }

  function parseLine(ended: Buffer): Revocation | EntryProblems {
    if (ended.length > maxLineBytes) return lineProblem(`must not be longer than ${maxLineBytes} bytes`);
    if (line === 1 && ended.subarray(0, byteOrderMark.length).equals(byteOrderMark))
      return lineProblem('must not start with a byte order mark: save the file as UTF-8 without it');
    const entry = parseRevocation(ended);
    if (entry.kind === 'problems' || list.entries < maxEntries) return entry;
    return lineProblem(`the file must not have more than ${maxEntries} entries: remove those that have expired`);
  }

  const isFull = (): boolean => problems.length > maxProblems || (problems.length > 0 && list.entries === maxEntries);

  async function readSlice(slice: Buffer): Promise<void> {
    const bytes = begun.length === 0 ? slice : Buffer.concat([begun, slice]);
    let start = 0;
    for (let end = bytes.indexOf(lineFeed); end !== -1 && !isFull(); end = bytes.indexOf(lineFeed, start)) {
      line += 1;
      if (!skipsToLineEnd) readLine(bytes, start, end);
      skipsToLineEnd = false;
      start = end + 1;
      linesInTurn += 1;
      if (linesInTurn % linesBetweenLooks !== 0) continue;
      if (linesInTurn < maxLinesInATurn && performance.now() - turnStartedMs < maxTurnMs) continue;
      await nextTurn();
      linesInTurn = 0;
      turnStartedMs = performance.now();
    }
    begun = skipsToLineEnd || isFull() ? Buffer.alloc(0) : bytes.subarray(start);
    if (begun.length <= maxLineBytes + 1) return;
    // The rest of the line changes nothing: it is a comment, or too long.
    line += 1;
    readLine(begun, 0, begun.length);
    line -= 1;
    skipsToLineEnd = true;
    begun = Buffer.alloc(0);
  }

  const unreadable = await loadInSlices(file, maxFileBytes, readSlice);
  if (unreadable !== undefined) return unreadable;
  line += 1;
  if (!skipsToLineEnd && !isFull()) readLine(begun, 0, begun.length);
  return problems.length > 0 ? { kind: 'problems', problems } : { kind: 'revocations', list };
}
