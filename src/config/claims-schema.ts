// The schema of claim sources: where the payload of a token has each identity field, the scopes and the actor.
import * as z from 'zod';
import { parsePath, toPointer } from '../json/strict-json.ts';
import { accountPlaceholder } from '../token/claim-source.ts';
import { list, mapping, notControl, text } from './value-schemas.ts';

const nameRule = 'must be the name of a claim, or a JSON Pointer that starts with /';
// For the JSON Schema: a name or a pointer, without {acc}, or with {acc} only as a whole segment of a pointer.
const namePattern = `^(?!.*\\{acc\\})(?:(?!/)${notControl}+|(?:/(?:(?![~/])${notControl}|~[01])*)+)$`;
const accountNamePattern = `^(?:(?!/|.*\\{acc\\})${notControl}+|(?:/(?:\\{acc\\}(?![^/])|(?:(?!\\{acc\\}|[~/])${notControl}|~[01])*))+)$`;

/** Only of an issuer without `{acc}`. */
export const defaultAccountClaim = 'acc';

const severalSources = 'Of a list of two to four, the first that the token has counts: not absent, null or "".';
const namesOf = 'The names of the members of the object there count.';

export const claims = mapping({
  aud: claimText()
    .default('aud')
    .meta({
      description: 'The audience: leads to a string or to a list of strings. See audiences.',
      examples: ['client_id'],
    }),
  uid: fieldSource()
    .default('uid')
    .meta({ description: `The user: leads to a string. ${severalSources}`, examples: ['sub', ['sub', 'client_id']] }),
  app: fieldSource()
    .default('app')
    .meta({
      description: `The application: leads to a string. ${severalSources}`,
      examples: ['azp', ['azp', '/aud/0']],
    }),
  acc: source(
    [claimText(), mapping({ keysOf: claimText().meta({ description: namesOf }) }), words(claimText)],
    '{ keysOf: NAME } or { wordsOf: NAME }',
  )
    .exactOptional()
    .meta({
      default: defaultAccountClaim,
      description:
        'The account or accounts: leads to a string or to a list of strings. { keysOf: NAME }: the names of the members of the object there. { wordsOf: NAME }: the words of the string there. At most 1,000 different names.',
      examples: ['org_id', '/o/id', { keysOf: '/organization' }, { wordsOf: 'tenants', by: ',' }],
    }),
  role: source(
    [
      accountText(),
      mapping({
        keysOf: accountText().meta({ description: namesOf }),
        having: z.literal(accountPlaceholder).exactOptional().meta({
          description: 'Only names whose value is an object with a member named like the addressed account count.',
        }),
      }),
      words(accountText),
    ],
    "{ keysOf: NAME }, { keysOf: NAME, having: '{acc}' } or { wordsOf: NAME }",
  )
    .default('role')
    .meta({
      description:
        'The role or roles: leads to a string or to a list of strings. { keysOf: NAME }: the names of the members of the object there; with having: "{acc}" only of those whose value is an object with a member named like the addressed account. { wordsOf: NAME }: the words of the string there. A segment {acc} of a JSON Pointer stands for the addressed account. At most 250 roles.',
      examples: [
        '/realm_access/roles',
        '/organization/{acc}/roles',
        { keysOf: 'urn:zitadel:iam:org:project:roles', having: accountPlaceholder },
        { wordsOf: 'scope' },
      ],
    }),
  scope: accountText()
    .default('scope')
    .meta({
      description:
        'The scopes: leads to a string of words, separated by single spaces, or to a list of strings. Not read without scopes. A segment {acc} of a JSON Pointer stands for the addressed account. At most 250 scopes.',
      examples: ['scope', 'permissions'],
    }),
  actor: claimText()
    .exactOptional()
    .meta({
      description:
        'Who acts for the user, for the log and the upstream: leads to a string, and grants nothing. A token may have none.',
      examples: ['/act/sub'],
    }),
});

function words(nameText: typeof claimText) {
  return mapping({
    wordsOf: nameText().meta({ description: 'The words of the string there count.' }),
    by: z
      .literal(',')
      .exactOptional()
      .meta({ description: 'Single commas separate the words; without it, single spaces.' }),
  });
}

/** A claim name or a JSON Pointer without `{acc}`. */
export function claimText() {
  return text(name => {
    const problem = nameProblem(name);
    if (problem !== undefined || !name.includes(accountPlaceholder)) return problem;
    return `must not contain ${accountPlaceholder}: only the JSON Pointers of role and scope may`;
  }).meta({ minLength: 1, maxLength: 256, pattern: namePattern });
}

function fieldSource() {
  return z.union([claimText(), list(claimText(), { noun: 'source', sameBy: pointerOf, min: 2, max: 4 })], {
    error: () => `${nameRule}, or a list of 2 to 4 of them`,
  });
}

/** `sub` and `/sub` are one source. */
function pointerOf(name: unknown): unknown {
  return typeof name === 'string' ? toPointer(parsePath(name) ?? [name]) : name;
}

/** The same with `{acc}` as a whole segment of a JSON Pointer. */
function accountText() {
  return text(name => {
    const problem = nameProblem(name);
    if (problem !== undefined) return problem;
    // The placeholder has no character that a JSON Pointer escapes.
    const segments = name.startsWith('/') ? name.split('/') : [`/${name}`];
    return segments.every(segment => segment === accountPlaceholder || !segment.includes(accountPlaceholder))
      ? undefined
      : `must have ${accountPlaceholder} only as a whole segment of a JSON Pointer, such as /organization/{acc}/roles`;
  }).meta({ minLength: 1, maxLength: 256, pattern: accountNamePattern });
}

function nameProblem(name: string): string | undefined {
  if (!/^[^\p{Cc}]{1,256}$/u.test(name)) return nameRule;
  if (parsePath(name) !== undefined) return undefined;
  return 'must be a valid JSON Pointer (RFC 6901) because it starts with /: write ~0 for ~ and ~1 for / within a name';
}

/** One of several forms. zod reports the problem of the form that has the right type, and this one if none has. */
function source<const Forms extends readonly [z.ZodType, ...z.ZodType[]]>(forms: Forms, others: string) {
  return z.union(forms, { error: () => `${nameRule}, or ${others}` });
}
