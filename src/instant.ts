// Parses a point in time as a person writes it.
import * as z from 'zod';

const dateTime = z.iso.datetime({ offset: true });

/** Seconds since the epoch, of RFC 3339 or of the seconds themselves; undefined for anything else. */
export function parseInstant(text: string): number | undefined {
  if (/^\d{1,12}(?:\.\d{1,6})?$/.test(text)) return Number(text);
  // RFC 3339 section 5.6 allows t and z in lower case.
  const upper = text.toUpperCase();
  return dateTime.safeParse(upper).success ? Date.parse(upper) / 1000 : undefined;
}
