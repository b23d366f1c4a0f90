// Parses a point in time as a person writes it.
import * as z from 'zod';

const dateTime = z.iso.datetime({ offset: true });

/** Seconds since the epoch, of RFC 3339 or of the seconds themselves; undefined for anything else. */
export function parseInstant(text: string): number | undefined {
  return /^\d{1,12}(?:\.\d{1,6})?$/.test(text) ? Number(text) : parseDateTime(text);
}

/** Seconds since the epoch, of RFC 3339 alone. A leap second (:60) is not accepted, because POSIX time has none. */
export function parseDateTime(text: string): number | undefined {
  // RFC 3339 section 5.6 allows t and z in lower case, and requires the seconds.
  const upper = text.toUpperCase();
  const [, time = '', fraction = '', offset = ''] = /^(.{19})(\.[0-9]+)?(Z|[+-].{5})$/.exec(upper) ?? [];
  if (!dateTime.safeParse(time + offset).success) return undefined;
  return Date.parse(time + offset) / 1000 + Number(`0${fraction}`);
}
