// Changes to the payload of a token: its claims, and their JSON.
import { claimedNames } from '../oracle/settings.ts';
import { dropClaim, listInForm, placeOfSource, placesBeside, setClaim, sourcesOf } from './claim-places.ts';
import { accounts, baseTime, certificates, tokenIds } from './identities.ts';
import { words } from './random.ts';
import { drop, escaped, type Member, row, set, type TokenContext, type TokenRow } from './token-draft.ts';

const oddValues: readonly unknown[] = [
  ...words('acct1 | acct1|acct1\u0000|acct1\n|acct1\u007f|ａcct1|аcct1|acct1\u200b|\ud800|ü|\u212a|a b| |', '|'),
  ...words('a,b a;b a"b . .. a/b * %2e __proto__ acct1# acct1@x acct1:x'),
  ...JSON.parse('[null, true, false, 0, 1, -1, 1.5, 1e21, [], {}, [""], [["acct1"]], {"a": 1}]'),
  'x'.repeat(129),
];

export const claims: readonly TokenRow[] = [
  row(4, 'a required claim is missing', (draft, context) => dropClaim(draft.payload, requiredClaim(context))),
  row(8, 'an identity claim of an odd value', (draft, context) =>
    setClaim(draft.payload, identityClaim(context), JSON.stringify(context.random.pick(oddValues))),
  ),
  row(3, 'an identity claim in an array', (draft, context) =>
    setClaim(draft.payload, identityClaim(context), JSON.stringify([context.acc])),
  ),
  row(12, 'an identity claim beside its place', (draft, context) => {
    const { random, acc } = context;
    const name = identityClaim(context);
    if (random.chance(0.7)) dropClaim(draft.payload, name);
    setClaim(draft.payload, random.pick(placesBeside(name)), JSON.stringify(acc));
  }),
  row(6, 'acc of another account', (draft, { random, issuer, acc }) =>
    setClaim(draft.payload, placeOfSource(issuer.claims.acc, acc), JSON.stringify(random.pick(accounts))),
  ),
  row(5, 'acc that is nearly the account', (draft, { random, issuer, acc }) => {
    const near = [`${acc}0`, acc.slice(0, -1), acc.toUpperCase(), acc.toLowerCase(), `.${acc}`, `${acc}.`];
    setClaim(draft.payload, placeOfSource(issuer.claims.acc, acc), JSON.stringify(random.pick(near)));
  }),
  row(4, 'an integer for an identity claim', (draft, context) => {
    const number = context.random.pick(
      words('0 7 -0 -7 7.0 7.5 7e0 9007199254740991 9007199254740992 9007199254740993 1e400 12345678901'),
    );
    setClaim(draft.payload, identityClaim(context), number);
  }),
  row(3, 'another role', (draft, { random, issuer, setup, acc }) => {
    const others = [
      ...claimedNames(setup.settings.roles),
      ...Object.keys(setup.settings.roles),
      ...words('viewer Owner owner,admin toString'),
    ];
    setClaim(draft.payload, placeOfSource(issuer.claims.role, acc), JSON.stringify(random.pick(others)));
  }),
  row(4, 'another list of roles', (draft, { random, issuer, setup, acc }) => {
    const named = claimedNames(setup.settings.roles);
    const lists = [[''], ['viewer', 'guest'], ['viewer', ...named], [...named, ...named], named, named.toReversed()];
    const broken = [[...named, 1], [null, ...named], [named], [{ role: named[0] }], [true], Object.assign({}, named)];
    const spaced = ['', ' ', named.join('  '), ` ${named[0]}`, `${named[0]} `, named.join(' '), named.join('\t')];
    const value = random.pick<unknown>([...lists, ...broken, ...spaced]);
    setClaim(draft.payload, placeOfSource(issuer.claims.role, acc), JSON.stringify(value));
  }),
  row(4, 'a list of roles at its bounds', (draft, { random, issuer, setup, acc }) => {
    const named = claimedNames(setup.settings.roles);
    const roles = Array.from({ length: random.pick([0, 250, 251, 251]) }, (_, i) => named[i] ?? 'r');
    const list = random.chance(0.5) ? roles : roles.toReversed();
    const source = issuer.claims.role;
    const isKeys = typeof source !== 'string' && 'keysOf' in source;
    const value = isKeys ? Object.fromEntries(numbered(list, acc)) : listInForm(source, list);
    setClaim(draft.payload, placeOfSource(source, acc), JSON.stringify(value));
  }),
  row(7, 'another list of accounts', (draft, { random, issuer, acc }) => {
    const source = issuer.claims.acc;
    const list = random.pick<readonly unknown[]>([
      [],
      [acc],
      [acc, acc],
      ['acct2', 'acct3'],
      [acc, 'acct2', 'a b', 'a.b', '.', ''],
      ['a b', 'ü'],
      [acc, 1],
      [acc, null],
      [acc, ['acct2']],
      ['7', 7],
      [7, 0, 9007199254740992],
      [7, -0, acc],
      Array.from({ length: 999 }, (_, i) => `n-${i}`).concat(acc),
      Array.from({ length: 1000 }, (_, i) => `n-${i}`).concat(acc),
      Array.from({ length: 1000 }, (_, i) => (i < 500 ? `n-${i}` : `n ${i}`)).concat('n-1', acc),
    ]);
    const texts = [list.join(' '), list.join(','), `${acc},`, `,${acc}`, ` ${acc}`, `${acc},,acct2`, ''];
    const value = random.chance(0.85) ? listInForm(source, list) : random.pick(texts);
    setClaim(draft.payload, placeOfSource(source, acc), JSON.stringify(random.chance(0.93) ? value : list));
  }),
  row(5, 'another scope', (draft, { random, issuer, setup, acc }) => {
    const named = Object.keys(setup.settings.scopes ?? { billing: {} });
    const value = random.pick<unknown>([
      ...words(`| |openid|${named.join(' ')}|${named.join('  ')}| ${named[0]}|${named[0]}|${named.join(',')}`, '|'),
      [],
      named,
      [...named, 1],
      [[named[0]]],
      null,
      1,
      { [named[0] ?? 'x']: {} },
      'x '.repeat(251).trim(),
      Array.from({ length: 251 }, () => 'x'),
      Array.from({ length: 250 }, () => 'x'),
    ]);
    setClaim(draft.payload, placeOfSource(issuer.claims.scope, acc), JSON.stringify(value));
  }),
  row(3, 'another actor', (draft, { random, issuer }) => {
    const value = random.pick<unknown>(['agent', ...oddValues]);
    setClaim(draft.payload, issuer.claims.actor ?? 'actor', JSON.stringify(value));
  }),
  row(3, 'another app', (draft, { random, issuer }) => {
    const app = random.pick(['web', 'mobile/2', 'WEB', 'web/', 'we', '*']);
    setClaim(draft.payload, random.pick(sourcesOf(issuer.claims.app)), JSON.stringify(app));
  }),
  row(6, 'another issuer', (draft, { random, issuer, setup, acc }) => {
    const others = setup.settings.issuers.map(each => each.issuer.replace('{acc}', random.pick(accounts)));
    const iss = issuer.issuer.replace('{acc}', acc);
    const near = [
      ...words(`${iss}/|${iss.toUpperCase()}| ${iss}|${iss}\u0000|${issuer.issuer}`, '|'),
      [iss],
      { iss },
      null,
      ...['', 'a b', 'a/b', '../acct1', 'a%62', `${acc}/../acct2`, 'ü', `${acc}.`, `.${acc}`, acc.toUpperCase()].map(
        name => issuer.issuer.replace('{acc}', name),
      ),
    ];
    set(draft.payload, 'iss', random.pick([...others, ...others, ...near]));
  }),
  row(6, 'another audience', (draft, { random, issuer }) => {
    const [own = ''] = issuer.audiences;
    const near = [
      ...words(`${own}2|${own.slice(0, -1)}|${own.toUpperCase()}|${own} |`, '|'),
      [],
      [[own]],
      [own, 1],
      { [own]: 1 },
      null,
      ['api2'],
      ['__proto__'],
      [own, own],
    ];
    setClaim(draft.payload, issuer.claims.aud, JSON.stringify(random.pick(near)));
  }),
  row(2, 'the audience twice in a list', (draft, { issuer }) =>
    setClaim(draft.payload, issuer.claims.aud, JSON.stringify([...issuer.audiences, ...issuer.audiences])),
  ),
  row(6, 'a time of an odd value', (draft, { random }) => {
    const value = random.pick(
      words(`null "9999999999" [] {} true 0 -1 1e15 1e400 -1e400 -1e308 ${baseTime}.5 -0 "${baseTime}"`),
    );
    setText(draft.payload, random.pick(['exp', 'nbf', 'iat']), value);
  }),
  row(7, 'times at their edges', (draft, { random, setup, edges }) => {
    const { maxLifetimeSeconds: longest, clockToleranceSeconds: tolerance } = setup.settings;
    const iat = baseTime - random.pick([0, 1, 60]);
    const exp = iat + longest + random.pick([-1, -0.25, 0, 0.25, 1]);
    set(draft.payload, 'iat', iat);
    set(draft.payload, 'exp', exp);
    edges.push(exp + tolerance, iat - tolerance);
  }),
  row(4, 'nbf near the edge', (draft, { random, setup, edges }) => {
    const nbf = baseTime + random.pick([-60, 0, 0.5, 20]);
    set(draft.payload, 'nbf', nbf);
    edges.push(nbf - setup.settings.clockToleranceSeconds);
  }),
  row(2, 'iat against exp', (draft, { random }) => {
    const exp = baseTime + 20;
    set(draft.payload, 'exp', exp);
    set(draft.payload, 'iat', exp + random.pick([-1, -0.25, 0, 0.25, 1]));
  }),
  row(6, 'expired', (draft, { random, setup, edges }) => {
    const { clockToleranceSeconds: tolerance, maxLifetimeSeconds: longest } = setup.settings;
    const exp = baseTime - tolerance - random.pick([0, 0.25, 1, 50]);
    set(draft.payload, 'exp', exp);
    set(draft.payload, 'iat', exp - Math.min(longest, 100));
    edges.push(exp + tolerance);
  }),
  row(2, 'iat is absent', draft => drop(draft.payload, 'iat')),
  row(2, 'another jti or sid', (draft, { random }) =>
    set(draft.payload, random.pick(['jti', 'sid']), random.pick([...tokenIds, ...oddValues])),
  ),
  row(5, 'a claim twice', (draft, context) => {
    const { random } = context;
    const [name, value] = random.pick(draft.payload);
    const spelling = random.chance(0.4) ? escaped(name) : name;
    draft.payload.splice(random.below(draft.payload.length + 1), 0, [spelling, random.chance(0.5) ? value : '"acct2"']);
  }),
  row(3, 'a claim of another case', (draft, context) => {
    const member = context.random.pick(draft.payload);
    member[0] = member[0].toUpperCase();
  }),
  row(5, 'a further claim', (draft, { random }) => {
    const further = random.pick([
      ['sub', 'u-9'],
      ['jti', '1'],
      ['then', {}],
      ['constructor', 1],
      ['toJSON', 'x'],
      ['hasOwnProperty', null],
      ['__proto__', { acc: 'acct2' }],
      ['nonce', 'n'],
      ['n', { a: [1, { b: 2 }] }],
    ] as const);
    if (!draft.payload.some(([name]) => name === JSON.stringify(further[0])))
      draft.payload.push([JSON.stringify(further[0]), JSON.stringify(further[1])]);
  }),
  row(4, 'cnf', (draft, { random }) => {
    const [{ thumbprint = '' } = {}] = certificates;
    const own = { 'x5t#S256': thumbprint };
    const others = [{ jkt: 'x' }, {}, null, [], thumbprint, { ...own, jkt: 'x' }, { 'x5t#S256': [thumbprint] }];
    const near = [`${thumbprint}=`, thumbprint.toLowerCase(), thumbprint.slice(1), ''];
    const value = random.pick<unknown>([own, own, ...others, ...near.map(each => ({ 'x5t#S256': each }))]);
    set(draft.payload, 'cnf', value);
  }),
  row(2, 'a member twice in a nested object', draft => {
    draft.payload.push(['"nested"', '{"a":1,"b":[{"c":1,"\\u0063":2}]}']);
  }),
  row(2, 'the same name in two objects', draft => {
    draft.payload.push(['"nested"', '{"acc":"acct2","b":[{"acc":1},{"acc":2}]}']);
  }),
  row(3, 'a claim with escapes for plain letters', (draft, { random }) => respell(random.pick(draft.payload))),
  row(2, 'a claim named by its escapes', (draft, { random }) => {
    const member = random.pick(draft.payload);
    member[0] = escaped(member[0]);
  }),
  row(3, 'white space in the payload', (draft, { random }) => {
    const space = random.pick([' ', '\n', '\t\r\n', '\u00a0', '\f', '\ufeff']);
    draft.payloadText = json =>
      random.pick([`${space}${json}`, `${json}${space}`, json.replaceAll(',"', `,${space}"`)]);
  }),
  row(4, 'a payload that is not the JSON of an object', (draft, { random }) => {
    const form = random.pick<(json: string) => string>([
      json => `[${json}]`,
      json => `${json}x`,
      json => json + json,
      json => json.replaceAll('"', "'"),
      json => json.replace('{', '{/**/'),
      json => json.replace(/}$/, ',}'),
      json => json.replace(/}$/, ''),
      json => JSON.stringify(json),
      () => 'null',
      () => '""',
      () => '{}',
      json => json.replace(/"exp":[^,}]*/, '"exp":01800000000'),
      json => json.replace(/"exp":[^,}]*/, '"exp":NaN'),
      json => json.replace(/"exp":([^,}]*)/, '"exp":+$1'),
      json => json.replace('":"', '":"\t'),
      json => json.replace('":"', '":"\\x41'),
      json => json.replace('":"', '":"\\u00g0'),
    ]);
    draft.payloadText = form;
  }),
  row(3, 'bytes in the payload that are no UTF-8', (draft, { random }) => {
    const bytes = Buffer.from(random.pick(words('ff c0af eda080 f5808080 e282 80')), 'hex');
    draft.payloadText = json => Buffer.concat([Buffer.from(json.replace(/}$/, ',"x":"')), bytes, Buffer.from('"}')]);
  }),
  row(2, 'a deep payload', draft => {
    draft.payload.push(['"deep"', '['.repeat(200) + ']'.repeat(200)]);
  }),
];

function requiredClaim({ random, issuer, acc }: TokenContext): string {
  const { aud, uid, app, acc: accounts, role } = issuer.claims;
  return random.pick([
    'iss',
    aud,
    'exp',
    ...sourcesOf(uid),
    ...sourcesOf(app),
    placeOfSource(accounts, acc),
    placeOfSource(role, acc),
  ]);
}

function identityClaim({ random, issuer, acc }: TokenContext): string {
  const { uid, app, acc: accounts, role } = issuer.claims;
  return placeOfSource(random.pick([accounts, accounts, ...sourcesOf(uid), ...sourcesOf(app), accounts, role]), acc);
}

function numbered(roles: readonly string[], acc: string): readonly (readonly [string, unknown])[] {
  return roles.map((role, i) => [role === 'r' ? `r${i}` : role, { [acc]: 'x' }]);
}

function setText(members: Member[], name: string, text: string): void {
  set(members, name, 0);
  const found = members.find(([each]) => each === JSON.stringify(name));
  if (found !== undefined) found[1] = text;
}

function respell(member: Member): void {
  if (member[1].startsWith('"') && !member[1].includes('\\')) member[1] = escaped(member[1]);
}
