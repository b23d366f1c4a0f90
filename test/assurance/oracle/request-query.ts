// Reads the accounts of a query, by the contract, "Account parameters" and "Overrides".

interface QueryFinding {
  readonly accounts: readonly string[];
  readonly mayBeInvalid: boolean;
}

/** Undefined: `request_invalid`. */
export function accountsInQuery(query: string, configured: readonly string[]): QueryFinding | undefined {
  const accounts: string[] = [];
  let mayBeInvalid = false;
  for (const parameter of query.split('&')) {
    const [name = ''] = namesIn(parameter);
    const isConfigured = configured.includes(name);
    if (isConfigured) {
      const value = parameter.slice(name.length + 1);
      if (value === '' || ['%', '+', ';'].some(char => value.includes(char))) return undefined;
      accounts.push(value);
    }
    const others = isConfigured ? [] : configured;
    for (const reading of readings(parameter)) {
      if (isAmbiguous(reading, others)) return undefined;
      // "A parameter that a common parser would take for it is invalid" is the rule, and its list of characters the least: format characters,
      // other control characters and, as PHP reads it, a dot for the underscore of `_method` may be refused too.
      mayBeInvalid ||= isAmbiguous(reading.replace(/[\p{Cc}\p{Cf}\s]/gu, ' '), others);
      mayBeInvalid ||= isAmbiguous(reading.replaceAll('.', '_'), []);
    }
    // `%uXXXX` is an encoding of old Windows servers.
    const text = parameter.replace(/%u([0-9a-f]{4})/gi, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
    mayBeInvalid ||= text !== parameter && [...readings(text)].some(reading => isAmbiguous(reading, others));
  }
  return { accounts, mayBeInvalid };
}

/** Each name in a parameter as sent, decoded once and twice. */
function readings(parameter: string): ReadonlySet<string> {
  const sent = new Set(namesIn(parameter));
  const once = new Set([...sent].map(decoded));
  return new Set([...sent, ...once, ...[...once].map(decoded)]);
}

function isAmbiguous(reading: string, configured: readonly string[]): boolean {
  const pieces = reading.split(delimiters);
  const candidates = [...pieces, pieces.join('')];
  // "No query parameter `_method` (its underscore counts) or `x-http-method-override`, in any of these readings."
  return candidates.some(
    piece =>
      folded(piece).replaceAll('-', '') === '_method' ||
      plain(piece) === 'xhttpmethodoverride' ||
      // The configured name may have a delimiter in it, which is no part of any piece.
      configured.some(wanted => plain(piece) === plain(wanted.split(delimiters).join(''))),
  );
}

const delimiters = /[=&;.[\]?!+\t-\r \0]/;

// "Cut as sent at its first `=` that is not at the beginning; what stands before it, and in the value the same after each `;`".
function namesIn(parameter: string): readonly string[] {
  const cut = (text: string): string => {
    const rest = text.replace(/^=+/, '');
    return text.slice(0, text.length - rest.length) + (rest.split('=', 1)[0] ?? '');
  };
  const name = cut(parameter);
  // Netty splits at `;` first, so that `=` is at a beginning after each of them, in the name too.
  return [name, ...parameter.split(';').map(cut)];
}

function plain(name: string): string {
  return folded(name).replace(/[_-]/g, '');
}

function folded(name: string): string {
  return name.normalize('NFKC').toUpperCase().toLowerCase();
}

function decoded(text: string): string {
  if (!text.includes('%')) return text;
  const pieces = text.split(/(%[0-9a-fA-F]{2})/);
  const bytes = pieces.map((piece, i) => (i % 2 === 1 ? Buffer.from(piece.slice(1), 'hex') : Buffer.from(piece)));
  return Buffer.concat(bytes).toString('utf8');
}
