// Reads the account parameters of a query, and refuses parameters that a server may take for one of them or for an override of the method.
// Servers parse queries in many ways: docs/explain.md lists the readings. Every step is linear in the length of the query.
import { foldCase } from '../path.ts';
import type { AccountGrammar } from '../principal.ts';
import { type Refusal, refusal } from '../refusal.ts';
import { type AccountPlace, toAccounts } from './place.ts';

export interface AccountParameters {
  readonly names: ReadonlySet<string>;
  /** The names as `bare` writes them, and all their look-alikes. */
  readonly bareNames: ReadonlySet<string>;
}

/** The configuration's schema allows only ASCII names with a letter or digit, and none that overrides the method. */
export function compileAccountParameters(names: readonly string[]): AccountParameters {
  return { names: new Set(names), bareNames: new Set(names.map(name => bare(name.toLowerCase()))) };
}

/** Without names it still refuses what overrides the method. */
export function queryPlace(names: readonly string[], grammar: AccountGrammar): AccountPlace {
  const parameters = compileAccountParameters(names);
  return {
    hasCharset: names.length > 0,
    read({ query }) {
      const named = accountsInQuery(parameters, query);
      return 'kind' in named ? named : toAccounts(named, grammar);
    },
  };
}

/** The value of each occurrence of a configured parameter. Parameters that nobody takes for a configured one are ignored. */
export function accountsInQuery(parameters: AccountParameters, query: string): readonly string[] | Refusal {
  if (query === '') return [];
  const accounts: string[] = [];
  const others: string[] = [];
  for (const parameter of query.split('&')) {
    const equals = parameter.indexOf('=');
    if (!parameters.names.has(equals === -1 ? parameter : parameter.slice(0, equals))) {
      others.push(parameter);
      continue;
    }
    const value = equals === -1 ? '' : parameter.slice(equals + 1);
    if (value === '' || /[%+;]/.test(value))
      return refusal('request_invalid', 'an account parameter with an ambiguous value');
    accounts.push(value);
  }
  return refuseLookAlike(parameters, others) ?? accounts;
}

/** Whether the name of a parameter is one by which frameworks let a client change the method of a request. */
export function isMethodOverride(name: string): boolean {
  return overridesMethod(name.toLowerCase());
}

function refuseLookAlike({ bareNames }: AccountParameters, parameters: readonly string[]): Refusal | undefined {
  // All names are read together: thousands of short ones would cost thousands of calls.
  const names = parameters.map(namesIn).join(endOfName);
  for (const reading of readings(names)) {
    if (candidates(reading.replace(signs, '')).some(name => bareNames.has(name)))
      return refusal('request_invalid', 'a look-alike of an account parameter');
    if (overridesMethod(reading)) return refusal('request_invalid', 'a parameter that overrides the method');
  }
  return undefined;
}

// The names that servers may read in one parameter as sent, joined by their ends. Netty and h3 drop every leading `=`. Some servers, Netty
// among them, still split at `;` (the form of HTML 4.01 appendix B.2.2).
function namesIn(parameter: string): string {
  const [name = ''] = /^=*[^=]*/.exec(parameter) ?? [];
  if (!parameter.includes(';')) return name;
  return name + `;${parameter}`.replace(/[^;]*(?:;(=*[^=;]*)|$)/g, `${endOfName}$1`);
}

// No server takes a name with this noncharacter for an ASCII name, so nothing is missed where a client sends it.
const endOfName = '\uffff';

// Text as servers may read it: as sent, decoded once, decoded twice. Each is folded.
function readings(text: string): readonly string[] {
  const asSent = folded(text);
  if (!asSent.includes('%')) return [asSent];
  const once = folded(percentDecoded(asSent));
  return once.includes('%') ? [asSent, once, folded(percentDecoded(once))] : [asSent, once];
}

const signs = /[_-]+/g;
// Every character that some parser treats as a delimiter of names. C libraries stop at NUL; URL drops tabs and line ends, and other control
// characters are as suspicious.
const delimiters = /[\0- =&;.[\]?!+\x7f]+/g;
const delimitersAndEnds = /[\0- =&;.[\]?!+\x7f\uffff]+/;

/** Each piece of each name, and the pieces of each name joined. */
function candidates(names: string): readonly string[] {
  return [...names.split(delimitersAndEnds), ...names.replace(delimiters, '').split(endOfName)];
}

// `_method` (Laravel, Rails, Spring, Express), where `method` is an ordinary name, and `x-http-method-override`.
function overridesMethod(names: string): boolean {
  if (!bare(names).includes('method')) return false;
  const withUnderscores = names.replaceAll('-', '');
  return (
    candidates(names.replace(signs, '')).includes('xhttpmethodoverride') ||
    // PHP turns dots into underscores.
    [withUnderscores, withUnderscores.replaceAll('.', '_')].some(each => candidates(each).includes('_method'))
  );
}

/** A folded text without delimiters and signs. */
function bare(text: string): string {
  return text.replace(signs, '').replace(delimiters, '');
}

// Text in ASCII, apart from ends of names: names are ASCII, so any other character is replaced by one that no name has.
function folded(text: string): string {
  return /[^\0-\x7f]/.test(text) ? text.replace(/[^\p{ASCII}]/gu, asciiForm).toLowerCase() : text.toLowerCase();
}

// Characters are normalized (NFKC) one by one, because ordering a run of combining marks takes quadratic time. White space, control and
// format characters become spaces.
function asciiForm(character: string): string {
  if (character === endOfName) return character;
  if (/[\s\p{Cc}\p{Cf}]/u.test(character)) return ' ';
  const compatible = foldCase(character.normalize('NFKC'));
  return /[^\0-\x7f]/.test(compatible) ? '*' : compatible;
}

// Decodes valid escapes and keeps the rest, as lenient servers do. `%uXXXX` is the form of old IIS.
function percentDecoded(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+|%u[0-9a-f]{4}/g, escapes => {
    if (escapes.startsWith('%u')) return String.fromCharCode(Number.parseInt(escapes.slice(2), 16));
    return Buffer.from(escapes.replaceAll('%', ''), 'hex').toString();
  });
}
