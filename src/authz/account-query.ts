// Finds the account that a query names. Servers read queries in many ways, so a parameter that only some of them would take
// for a configured one is refused instead of read.
import { type Refusal, refusal } from './refusal.ts';

export interface AccountParameters {
  readonly names: ReadonlySet<string>;
  /** The forms that look-alikes of the names share. */
  readonly foldedNames: ReadonlySet<string>;
}

export function compileAccountParameters(names: readonly string[]): AccountParameters {
  return { names: new Set(names), foldedNames: new Set(names.flatMap(folded)) };
}

/** The value of each occurrence of a configured parameter, as plain text. Parameters of other names are not looked at. */
export function accountsInQuery(parameters: AccountParameters, query: string): readonly string[] | Refusal {
  if (parameters.names.size === 0 || query === '') return [];
  const accounts: string[] = [];
  for (const parameter of query.split('&')) {
    const equals = parameter.indexOf('=');
    const name = equals === -1 ? parameter : parameter.slice(0, equals);
    if (parameters.names.has(name)) {
      const value = equals === -1 ? '' : parameter.slice(equals + 1);
      if (value === '' || /[%+;]/.test(value))
        return refusal('request_invalid', 'an account parameter with an ambiguous value');
      accounts.push(value);
    } else if (looksLikeOneOf(parameters.foldedNames, parameter)) {
      return refusal('request_invalid', 'a look-alike of an account parameter');
    }
  }
  return accounts;
}

// Some servers still split at `;` (the form of HTML 4.01 appendix B.2.2), hence every piece between semicolons counts as a parameter.
function looksLikeOneOf(foldedNames: ReadonlySet<string>, parameter: string): boolean {
  return parameter.split(';').some(piece =>
    readings(piece)
      .flatMap(folded)
      .some(form => foldedNames.has(form)),
  );
}

// The name of a piece as a server may read it: as it stands, decoded once, decoded twice. A server that decodes before it
// splits ends the name at a delimiter that was encoded.
function readings(piece: string): string[] {
  const equals = piece.indexOf('=');
  const raw = equals === -1 ? piece : piece.slice(0, equals);
  if (!raw.includes('%')) return [raw];
  const once = percentDecoded(raw);
  const twice = percentDecoded(once);
  return [raw, ...[once, twice].flatMap(name => [name, ...name.split(/[&;=]/)])];
}

// The forms in which parsers take a name alike: many frameworks ignore case, PHP turns dots, spaces and an unclosed `[` into
// underscores, qs and Rails cut at `[` (`a[]`, `a[b]`), qs and Rack 2 take brackets off the front (`[a]`, `[]a`) and Rack 2 off the
// end (`a]`), URLSearchParams drops a leading `?`, URL every tab and line end wherever it stands, C libraries stop at NUL.
function folded(name: string): string[] {
  const [text = ''] = name
    .normalize('NFKC')
    .replace(/[\t\n\r]/g, '')
    .replace(/^[\s+?[\]\p{Cc}\p{Cf}]+/u, '')
    .split('\0');
  const bracket = text.search(/[[\]]/);
  const forms = bracket === -1 ? [text] : [text.slice(0, bracket), text.replaceAll('[', '_')];
  return forms.map(form =>
    form
      .replace(/[\s+\p{Cc}\p{Cf}]+$/u, '')
      .replace(/[\s+.]/gu, '_')
      .toLowerCase()
      .toUpperCase(),
  );
}

// Decodes what is decodable and leaves the rest, as lenient servers do; `%uXXXX` is the form of old IIS.
function percentDecoded(text: string): string {
  return text
    .replace(/%u([0-9a-f]{4})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replace(/(?:%[0-9a-f]{2})+/gi, run => Buffer.from(run.replaceAll('%', ''), 'hex').toString('utf8'));
}
