// What a rule is: an id that stays, words for people, and a function that finds what breaks it.
import { quotedForeignText } from '../foreign-text.ts';
import type { ProtoValue } from './proto-value.ts';

export interface Rule<Subject> {
  /** What it finds, for the list in docs/envoy-lint.md. */
  readonly what: string;
  /** Why that is dangerous: half a sentence. */
  readonly why: string;
  /** What to write instead: an order. */
  readonly fix: string;
  readonly find: (subject: Subject) => readonly Sighting[];
}

export interface Sighting {
  readonly at: ProtoValue;
  /** The rest of a sentence that starts with the place. */
  readonly says: string;
}

/** By id, in kebab-case. */
export type Rules<Subject> = Readonly<Record<string, Rule<Subject>>>;

export function sightings(condition: boolean, at: ProtoValue, says: string): readonly Sighting[] {
  return condition ? [{ at, says }] : [];
}

/** A boolean that has to be written and to be true. */
export function unlessTrue(at: ProtoValue): readonly Sighting[] {
  const isUnreadable = at.isPresent && at.flag() === undefined;
  return sightings(at.flag() !== true && !isUnreadable, at, at.isPresent ? 'is false' : 'is missing');
}

/** A boolean that must not be true. */
export function ifTrue(at: ProtoValue): readonly Sighting[] {
  return sightings(at.flag() === true, at, 'is true');
}

export function ifPresent(at: ProtoValue): readonly Sighting[] {
  return sightings(at.isPresent, at, 'is set');
}

const maxQuoted = 60;

/** Text of the file, to be shown. */
export function quoted(text: string): string {
  return quotedForeignText(text, maxQuoted);
}

/** "a, b, c and 4 more". */
export function listed(names: readonly string[]): string {
  const shown = names.slice(0, 3);
  const rest = names.length - shown.length;
  return rest > 0 ? `${shown.join(', ')} and ${rest} more` : shown.join(', ');
}
