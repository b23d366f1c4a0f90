// RE2 for a query that overrides the method (`_method`, `x-http-method-override`), in the readings of `authz/places/query-place.ts`: as sent,
// percent-decoded once or twice. Envoy refuses it where no check does, on public routes. It may match a little more, never less.

// An encoded character stands for any character. Only that at the beginning of the name is compared by its code, see `first`: otherwise the
// pattern would match many other names.
const encoded = '%[%0-9a-fu]+';
const ignored = `(?:[-_.;[\\]?!+]|${encoded})*`;

/** A character whose code has these digits, encoded once or twice; `%u005f` is the form of old IIS. Digits may be encoded themselves. */
function first(...codes: readonly string[]): string {
  const digits = codes.map(code =>
    Array.from(code, digit =>
      digit >= 'a' ? `(?:${digit}|%[46]${digit.charCodeAt(0) - 0x60})` : `(?:${digit}|%3${digit})`,
    ),
  );
  return `%(?:25)?(?:(?:u|%[57]5)(?:0|%30){2})?(?:${digits.map(each => each.join('')).join('|')})`;
}

// What stands for the first character beyond ASCII: the leading byte of blocks with compatibility forms (full width, circled, …).
const foreign = `(?:${first('cb', 'e2', 'ef', 'f0')}|%(?:25)?(?:u|%[57]5))${encoded.replace('%', '')}`;
// PHP reads a dot as an underscore.
const underscore = `(?:[_.]|${first('5f', '2e')}|${foreign})`;
const x = `(?:x|${first('58', '78')}|${foreign})`;

function word(start: string, rest: string): string {
  return [start, ...Array.from(rest, letter => `(?:${letter}|${encoded})`)].join(ignored);
}

/** For the whole of `:path`. */
export const methodOverridePattern = [
  '(?i)[^?]*\\?(?:.*[&;])?=*',
  `(?:[^=&]*(?:[.;[\\]?!+]|${encoded}))?${ignored}`,
  `(?:${word(underscore, 'method')}|${word(x, 'httpmethodoverride')})${ignored}`,
  `(?:(?:[=&.;[\\]?!+]|${encoded}).*)?`,
].join('');
