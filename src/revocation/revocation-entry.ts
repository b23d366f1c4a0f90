// Parses one line of a revocation list: an entry, or every problem of the line.
import { isAccount, isIdentityField } from '../authz/principal.ts';
import { isJsonObject, type JsonProblem, parseStrictJson } from '../json/strict-json.ts';
import { parseDateTime } from '../text/instant.ts';
import { issuerGrammar, issuerRule } from '../text/issuer-name.ts';
import { type Revocation, selectorNames } from './revocation-list.ts';

export interface EntryProblem {
  /** Undefined for the line as a whole. */
  readonly member?: string;
  /** The rest of a sentence that starts with the member or the line. Repeats no value. */
  readonly message: string;
}

export interface EntryProblems {
  readonly kind: 'problems';
  readonly problems: readonly EntryProblem[];
}

/** Never throws. */
export function parseRevocation(line: Uint8Array): Revocation | EntryProblems {
  const json = parseStrictJson(line);
  if (json.kind === 'problem') return lineProblem(jsonProblems[json.problem]);
  if (!isJsonObject(json.value)) return lineProblem('must be a JSON object');
  const texts = new Map<string, string>();
  const problems: EntryProblem[] = [];
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
export function lineProblem(message: string): EntryProblems {
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
  // A line is shorter than the longest jti of a token.
  ['jti', text => (text === '' ? 'must not be empty' : undefined)],
  ['issuedBefore', time],
  ['expires', time],
]);
const unknownMember = `is not a known member: the members are ${[...rules.keys()].join(', ')}`;
