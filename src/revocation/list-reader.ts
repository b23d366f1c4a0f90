// Reads the text of a revocation list (JSON Lines), slice by slice, into an index, or gives every problem with its line.
import { isAccount, isIdentityField, issuerGrammar, issuerRule } from '../authz/principal.ts';
import { createDigest } from '../files/file-watch.ts';
import { isJsonObject, type JsonProblem, parseStrictJson } from '../json/strict-json.ts';
import { parseDateTime } from '../text/instant.ts';
import { createRevocationList, type Revocation, type RevocationList, selectorNames } from './revocation-list.ts';

export interface LineProblem {
  /** Counts from 1. */
  readonly line: number;
  /** Undefined for the line as a whole. */
  readonly member?: string;
  /** The rest of a sentence that starts with the member or the line. Repeats no value. */
  readonly message: string;
}

interface EntryProblems {
  readonly kind: 'problems';
  readonly problems: readonly Omit<LineProblem, 'line'>[];
}

export type ReadList =
  | {
      readonly kind: 'revocations';
      readonly list: RevocationList;
      /** Of the bytes. */
      readonly digest: string;
    }
  /** Never empty. */
  | { readonly kind: 'problems'; readonly problems: readonly LineProblem[] };

const maxEntries = 100_000;
const maxLineBytes = 1024;
const maxProblems = 100;

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const numberSign = 0x23;
const byteOrderMark = Buffer.from('\ufeff');

/** `onEntry` gets each valid entry: the list keeps digests of long ones. */
export function createListReader(onEntry: (entry: Revocation) => void = () => undefined) {
  const list = createRevocationList();
  const problems: LineProblem[] = [];
  const digest = createDigest();
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
    return lineProblem(`the list must not have more than ${maxEntries} entries: remove those that have expired`);
  }

  return {
    add(slice: Buffer): void {
      digest.add(slice);
      const bytes = begun.length === 0 ? slice : Buffer.concat([begun, slice]);
      let start = 0;
      for (let end = bytes.indexOf(lineFeed); end !== -1; end = bytes.indexOf(lineFeed, start)) {
        readLine(bytes.subarray(start, end));
        start = end + 1;
      }
      // With one byte for a carriage return and one too many, the rest of a longer line changes nothing.
      begun = bytes.subarray(start, start + maxLineBytes + 2);
    },
    end(): ReadList {
      readLine(begun);
      if (problems.length > maxProblems)
        problems.splice(maxProblems, Infinity, { line, message: 'more problems are not listed' });
      return problems.length > 0
        ? { kind: 'problems', problems }
        : { kind: 'revocations', list, digest: digest.text() };
    },
  };
}

// One line: an entry, or every problem of it.

/** Never throws. */
export function parseRevocation(line: Uint8Array): Revocation | EntryProblems {
  const json = parseStrictJson(line);
  if (json.kind === 'problem') return lineProblem(jsonProblems[json.problem]);
  if (!isJsonObject(json.value)) return lineProblem('must be a JSON object');
  const texts = new Map<string, string>();
  const problems: { member: string; message: string }[] = [];
  for (const [member, value] of Object.entries(json.value)) {
    const message = memberProblem(member, value);
    if (message !== undefined) problems.push({ member, message });
    else if (typeof value === 'string') texts.set(member, value);
  }
  if (problems.length > 0) return { kind: 'problems', problems };
  const selected = selectorNames.filter(name => texts.has(name));
  if (selected.length === 0) return lineProblem(`must have at least one of ${selectorNames.join(', ')}`);
  const instantOf = (name: string): number => {
    const text = texts.get(name);
    return (text === undefined ? undefined : parseDateTime(text)) ?? Infinity;
  };
  return {
    kind: 'revocation',
    values: Object.fromEntries(selected.map(name => [name, texts.get(name)])),
    issuedBefore: instantOf('issuedBefore'),
    expires: instantOf('expires'),
  };
}

/** A problem of the line as a whole. */
function lineProblem(message: string): EntryProblems {
  return { kind: 'problems', problems: [{ message }] };
}

function memberProblem(member: string, value: unknown): string | undefined {
  const problemOf = rules.get(member);
  if (problemOf === undefined) return unknownMember;
  return typeof value === 'string' ? problemOf(value) : 'must be text: put it in quotes';
}

const jsonProblems: Readonly<Record<JsonProblem['problem'], string>> = {
  'not UTF-8': 'must be text in UTF-8',
  'not JSON': 'must be a JSON object on a line of its own',
  'a member twice': 'must not have a member twice',
};

const identityRule = 'must be 1 to 128 visible ASCII characters without space , ; and "';
const timeRule = 'must be an RFC 3339 time such as 2026-11-23T04:00:00Z';

const identity = (text: string): string | undefined => (isIdentityField(text) ? undefined : identityRule);
const notEmpty = (text: string): string | undefined => (text === '' ? 'must not be empty' : undefined);
const time = (text: string): string | undefined => (parseDateTime(text) === undefined ? timeRule : undefined);

// A value that no accepted token has would stop nobody, although whoever wrote it believes so.
const rules: ReadonlyMap<string, (text: string) => string | undefined> = new Map([
  ['iss', text => (issuerGrammar.test(text) ? undefined : issuerRule)],
  ['uid', identity],
  [
    'acc',
    text =>
      isAccount(text, { dots: true, lower: false })
        ? undefined
        : 'must be 1 to 128 of A-Z a-z 0-9 . _ ~ -, and not . or ..',
  ],
  ['app', identity],
  // A line is shorter than the longest sid and jti of a token.
  ['sid', notEmpty],
  ['jti', notEmpty],
  ['issuedBefore', time],
  ['expires', time],
]);
const unknownMember = `is not a known member: the members are ${[...rules.keys()].join(', ')}`;
