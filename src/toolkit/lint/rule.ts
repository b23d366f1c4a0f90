// The shape of a lint rule: a stable id, words for people, and a function that finds violations.
import { listWords, quotedPrintable } from '../../text/printable.ts';
import type { ProtoValue } from './proto-value.ts';

export interface Rule<Subject> {
  /** What it finds, for the list in docs/envoy-lint.md. */
  readonly what: string;
  /** Why that is dangerous: half a sentence. */
  readonly why: string;
  /** What to write instead: an order. */
  readonly fix: string;
  readonly find: (subject: Subject) => readonly Finding[];
}

export interface Finding {
  readonly at: ProtoValue;
  /** The rest of a sentence that starts with the place. */
  readonly says: string;
}

/** By id, in kebab-case. */
export type Rules<Subject> = Readonly<Record<string, Rule<Subject>>>;

export function when(condition: boolean, at: ProtoValue | undefined, says: string): readonly Finding[] {
  return condition && at !== undefined ? [{ at, says }] : [];
}

/** A boolean that must be present and true. */
export function unlessTrue(at: ProtoValue): readonly Finding[] {
  const flag = at.flag();
  return when(flag === false || !at.isPresent, at, flag === false ? 'is false' : 'is missing');
}

/** A boolean that must not be true. */
export function ifTrue(at: ProtoValue): readonly Finding[] {
  return when(at.flag() === true, at, 'is true');
}

export function ifPresent(at: ProtoValue, says = 'is set'): readonly Finding[] {
  return when(at.isPresent, at, says);
}

/** Lists the names, if any: "keeps a, b, c and 4 more as a client sent it". */
export function ifAny(
  names: readonly string[],
  at: ProtoValue | undefined,
  verb: string,
  rest = '',
): readonly Finding[] {
  return when(names.length > 0, at, `${verb} ${listWords(names, 3)}${rest}`);
}

/** Quotes text of the file for a message, cut after 60 characters. */
export function quoted(text: string): string {
  return quotedPrintable(text, 60);
}
