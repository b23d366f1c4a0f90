// Takes out of what others wrote each text that repeats a secret of ours, so that it reaches no log, page or file.

export const leftOut = '(left out: it repeats a secret of ours)';
/** A shorter one is no secret, and may be a word of any text. */
const minLength = 8;

/** The same JSON value, but for the texts and names of members that have the secret: as it is, percent-encoded, or in base64. */
export function withoutSecret(value: unknown, secret: string): unknown {
  // A secret that is base64 of printable text may come back as that.
  const [decoded = ''] = /^[ -~]+$/.exec(fromBase64(secret)) ?? [];
  const forms = [secret, decoded].filter(({ length }) => length >= minLength);
  const repeats = (text: string): boolean =>
    [text, text.replace(/%([0-9a-f]{2})/gi, fromPercent), text.replace(/[\w+/-]{8,}/g, fromBase64)].some(reading =>
      forms.some(form => reading.includes(form)),
    );
  const filter = (part: unknown): unknown => {
    if (typeof part === 'string') return repeats(part) ? leftOut : part;
    if (typeof part !== 'object' || part === null) return part;
    if (Array.isArray(part)) return part.map(filter);
    return Object.fromEntries(Object.entries(part).map(([name, member]) => [filter(name), filter(member)]));
  };
  return filter(value);
}

function fromPercent(_: string, code: string): string {
  return String.fromCharCode(Number.parseInt(code, 16));
}

function fromBase64(text: string): string {
  return Buffer.from(text, 'base64').toString('latin1');
}
