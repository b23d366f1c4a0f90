// Reads the account parameters of a query. Servers parse queries in many ways, so a parameter that only some of them take for a configured
// one is refused; docs/explain.md lists the readings. Every step is linear in the length of the query.
import { type Refusal, refusal } from './refusal.ts';

export interface AccountParameters {
  readonly names: ReadonlySet<string>;
  /** The names as `folded` and `underscored` write them, and all their look-alikes. */
  readonly foldedNames: ReadonlySet<string>;
  /** Of the folded names: a shorter or longer piece is not compared. */
  readonly minLength: number;
  readonly maxLength: number;
}

/** The configuration's schema allows only ASCII names. */
export function compileAccountParameters(names: readonly string[]): AccountParameters {
  const foldedNames = new Set(names.map(name => underscored(folded(name))));
  const lengths = Array.from(foldedNames, ({ length }) => length);
  return { names: new Set(names), foldedNames, minLength: Math.min(...lengths), maxLength: Math.max(...lengths) };
}

/** The value of each occurrence of a configured parameter. Parameters that nobody takes for a configured one are ignored. */
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
    } else if (readings(parameter).some(reading => namesOneOf(parameters, reading))) {
      return refusal('request_invalid', 'a look-alike of an account parameter');
    }
  }
  return accounts;
}

// A parameter as a server may read it: as sent, decoded once, decoded twice. Name and value are decoded together: for a server that
// decodes before it splits, an encoded delimiter ends a name or starts one (`x=1%26account_id=a`).
function readings(parameter: string): readonly string[] {
  if (!parameter.includes('%')) return [parameter];
  const once = percentDecoded(parameter);
  return [...new Set([parameter, once, percentDecoded(once)])];
}

// Some servers still split at `;` (the form of HTML 4.01 appendix B.2.2).
function namesOneOf({ foldedNames, minLength, maxLength }: AccountParameters, reading: string): boolean {
  return folded(reading)
    .split(/[&;]/)
    .some(
      piece =>
        piece.length >= minLength &&
        possibleNames(piece).some(name => name.length <= maxLength && foldedNames.has(underscored(name))),
    );
}

// Maps characters that parsers treat alike to one. Many frameworks ignore case. URL drops tabs and line ends. Other control and format
// characters become spaces, except NUL, which ends a name. Code points are normalized one by one, because ordering a run of combining
// marks takes quadratic time.
function folded(text: string): string {
  return text
    .replace(/[^\p{ASCII}]/gu, compatible)
    .replace(/[\t\n\r]/g, '')
    .replace(/(?:(?!\0)[\s+\p{Cc}\p{Cf}])+/gu, blanks => ' '.repeat(blanks.length))
    .toLowerCase()
    .toUpperCase();
}

// Of what one character stands for in more than six, up to eighteen, no letter is ASCII (Unicode 17).
function compatible(character: string): string {
  const normalized = character.normalize('NFKC');
  return normalized.length > 6 ? character : normalized;
}

// The names that parsers may read in a folded piece. Parsers trim spaces. URLSearchParams drops a leading `?`, Spring's data binder a
// leading `!`. qs and Rack 2 drop leading brackets (`[a]`, `[]a`), Rack 2 a trailing one (`a]`). C libraries stop at NUL. qs and Rails cut
// at `[` (`a[]`, `a[b]`). PHP turns an unclosed `[` into an underscore.
function possibleNames(piece: string): readonly string[] {
  const [beforeEquals = ''] = piece.split('=', 1);
  const [name = ''] = beforeEquals.replace(/^[ ?![\]\0]+/, '').split('\0', 1);
  const bracket = name.search(/[[\]]/);
  const forms = bracket === -1 ? [name] : [name.slice(0, bracket), name.replaceAll('[', '_')];
  return forms.map(form => form.trimEnd());
}

// PHP turns dots and spaces into underscores.
function underscored(name: string): string {
  return name.replace(/[ .]/g, '_');
}

// Decodes valid escapes and keeps the rest, as lenient servers do. `%uXXXX` is the form of old IIS. Between the steps, a character is a byte.
function percentDecoded(text: string): string {
  const fromHex = (_: string, hex: string): string => String.fromCharCode(Number.parseInt(hex, 16));
  const bytes = Buffer.from(text.replace(/%u([0-9a-f]{4})/gi, fromHex)).toString('latin1');
  return Buffer.from(bytes.replace(/%([0-9a-f]{2})/gi, fromHex), 'latin1').toString();
}
