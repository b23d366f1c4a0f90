// Parses a point in time as a person writes it.

/** Seconds since the epoch, of RFC 3339 or of the seconds themselves; undefined for anything else. */
export function parseInstant(text: string): number | undefined {
  return /^\d{1,12}(?:\.\d{1,6})?$/.test(text) ? Number(text) : parseDateTime(text);
}

/** Seconds since the epoch, of RFC 3339 alone. A leap second (:60) is not accepted, because POSIX time has none. */
export function parseDateTime(text: string): number | undefined {
  // RFC 3339 section 5.6 allows t and z in lower case, and requires the seconds.
  const match = grammar.exec(text.toUpperCase());
  if (match === null) return undefined;
  const [, time = '', fraction = '', offset = ''] = match;
  const local = Date.parse(`${time}Z`);
  // Date.parse reads February 30 as March 2.
  if (Number.isNaN(local) || new Date(local).toISOString() !== `${time}.000Z`) return undefined;
  return Date.parse(time + offset) / 1000 + Number(`0${fraction}`);
}

const grammar = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;
