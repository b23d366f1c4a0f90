// Reads the file of a revocation list (JSON Lines) into an index, or gives every problem with its line.
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

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const numberSign = 0x23;
const byteOrderMark = Buffer.from('\ufeff');

/**
 * Reads a regular file only, slice by slice: calls are answered between two. Rejects only on an internal error. `onEntry` gets each valid
 * entry: the list keeps digests of long ones.
 */
export async function loadRevocations(
  file: string,
  onEntry: (entry: Revocation) => void = () => undefined,
): Promise<LoadedRevocations> {
  const list = createRevocationList();
  const problems: LineProblem[] = [];
  let line = 0;
  /** The beginning of a line whose end has not been read. */
  let begun: Buffer = Buffer.alloc(0);

  function readLine(text: Buffer): void {
    line += 1;
    const isFull = problems.length > maxProblems || (problems.length > 0 && list.entries === maxEntries);
    // A file may have millions of comments: no object is made for one.
    if (isFull || text[0] === numberSign) return;
    const ended = text.at(-1) === carriageReturn ? text.subarray(0, -1) : text;
    if (ended.length === 0) return;
    const entry = parseLine(ended);
    if (entry.kind === 'revocation') {
      list.add(entry);
      onEntry(entry);
    } else problems.push(...entry.problems.map(problem => ({ line, ...problem })));
  }

  function parseLine(ended: Buffer): Revocation | EntryProblems {
    if (ended.length > maxLineBytes) return lineProblem(`must not be longer than ${maxLineBytes} bytes`);
    if (line === 1 && ended.subarray(0, byteOrderMark.length).equals(byteOrderMark))
      return lineProblem('must not start with a byte order mark: save the file as UTF-8 without it');
    const entry = parseRevocation(ended);
    if (entry.kind === 'problems' || list.entries < maxEntries) return entry;
    return lineProblem(`the file must not have more than ${maxEntries} entries: remove those that have expired`);
  }

  const unreadable = await loadInSlices(file, maxFileBytes, slice => {
    const bytes = Buffer.concat([begun, slice]);
    let start = 0;
    for (let end = bytes.indexOf(lineFeed); end !== -1; end = bytes.indexOf(lineFeed, start)) {
      readLine(bytes.subarray(start, end));
      start = end + 1;
    }
    // With one byte for a carriage return and one too many, the rest of a longer line changes nothing.
    begun = bytes.subarray(start, start + maxLineBytes + 2);
  });
  if (unreadable !== undefined) return unreadable;
  readLine(begun);
  if (problems.length > maxProblems)
    problems.splice(maxProblems, Infinity, { line, message: 'more problems are not listed' });
  return problems.length > 0 ? { kind: 'problems', problems } : { kind: 'revocations', list };
}
