// Changes to a token, invalid or unusual but valid, one at a time: its claims, its header, its signature, its bytes.
import { dropClaim, placeOfSource, placesBeside, setClaim } from './claim-places.ts';
import { accounts, baseTime, tokenIds } from './identities.ts';
import { keyPairs } from './key-pairs.ts';
import {
  base64url,
  derSignature,
  drop,
  hmacWithPublicKey,
  type Member,
  set,
  signature,
  type TokenContext,
  type TokenDraft,
  twinSignature,
} from './token-draft.ts';

type Change = (draft: TokenDraft, context: TokenContext) => void;
type Row = readonly [weight: number, name: string, change: Change];

/** Makes one change and returns its name. */
export function changeToken(draft: TokenDraft, context: TokenContext): string {
  const [, name, change] = context.random.weighted(rows.map(row => [row[0], row] as const));
  change(draft, context);
  return name;
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

const oddValues: readonly unknown[] = [
  ...[null, true, false, 0, 1, -1, 1.5, 1e21, '', ' ', [], {}, [''], [['acct1']], { a: 1 }],
  ...[
    'acct1 ',
    ' acct1',
    'acct1\u0000',
    'acct1\n',
    'acct1\u007f',
    'ａcct1',
    'аcct1',
    'acct1\u200b',
    '\ud800',
    'ü',
    '\u212a',
  ],
  ...[
    'a,b',
    'a;b',
    'a"b',
    'a b',
    '.',
    '..',
    'a/b',
    '*',
    '%2e',
    'x'.repeat(129),
    '__proto__',
    'acct1#',
    'acct1@x',
    'acct1:x',
  ],
];

const claims: readonly Row[] = [
  [4, 'a required claim is missing', (draft, context) => dropClaim(draft.payload, requiredClaim(context))],
  [
    8,
    'an identity claim of an odd value',
    (draft, context) => setClaim(draft.payload, identityClaim(context), JSON.stringify(context.random.pick(oddValues))),
  ],
  [
    3,
    'an identity claim in an array',
    (draft, context) => setClaim(draft.payload, identityClaim(context), JSON.stringify([context.acc])),
  ],
  [
    12,
    'an identity claim beside its place',
    (draft, context) => {
      const { random, acc } = context;
      const name = identityClaim(context);
      if (random.chance(0.7)) dropClaim(draft.payload, name);
      setClaim(draft.payload, random.pick(placesBeside(name)), JSON.stringify(acc));
    },
  ],
  [
    6,
    'acc of another account',
    (draft, { random, issuer, acc }) =>
      setClaim(draft.payload, placeOfSource(issuer.claims.acc, acc), JSON.stringify(random.pick(accounts))),
  ],
  [
    5,
    'acc that is nearly the account',
    (draft, { random, issuer, acc }) => {
      const near = [`${acc}0`, acc.slice(0, -1), acc.toUpperCase(), acc.toLowerCase(), `.${acc}`, `${acc}.`];
      setClaim(draft.payload, placeOfSource(issuer.claims.acc, acc), JSON.stringify(random.pick(near)));
    },
  ],
  [
    4,
    'an integer for an identity claim',
    (draft, context) => {
      const number = context.random.pick([
        '0',
        '7',
        '-0',
        '-7',
        '7.0',
        '7.5',
        '7e0',
        '9007199254740991',
        '9007199254740992',
        '9007199254740993',
        '1e400',
        '12345678901',
      ]);
      setClaim(draft.payload, identityClaim(context), number);
    },
  ],
  [
    3,
    'another role',
    (draft, { random, issuer, setup, acc }) => {
      const others = [...Object.keys(setup.settings.roles), 'viewer', 'Owner', 'owner,admin', 'toString'];
      setClaim(draft.payload, placeOfSource(issuer.claims.role, acc), JSON.stringify(random.pick(others)));
    },
  ],
  [
    4,
    'another list of roles',
    (draft, { random, issuer, setup, acc }) => {
      const named = Object.keys(setup.settings.roles);
      const lists = [[''], ['viewer', 'guest'], ['viewer', ...named], [...named, ...named], named, named.toReversed()];
      const broken = [[...named, 1], [null, ...named], [named], [{ role: named[0] }], [true], Object.assign({}, named)];
      const words = ['', ' ', named.join('  '), ` ${named[0]}`, `${named[0]} `, named.join(' '), named.join('\t')];
      const value = random.pick<unknown>([...lists, ...broken, ...words]);
      setClaim(draft.payload, placeOfSource(issuer.claims.role, acc), JSON.stringify(value));
    },
  ],
  [
    4,
    'a list of roles at its bounds',
    (draft, { random, issuer, setup, acc }) => {
      const named = Object.keys(setup.settings.roles);
      const roles = Array.from({ length: random.pick([0, 100, 101, 101]) }, (_, i) => named[i] ?? 'r');
      const list = random.chance(0.5) ? roles : roles.toReversed();
      const source = issuer.claims.role;
      const isWords = typeof source !== 'string' && 'wordsOf' in source;
      const value =
        typeof source === 'string' ? list : isWords ? list.join(' ') : Object.fromEntries(numbered(list, acc));
      setClaim(draft.payload, placeOfSource(source, acc), JSON.stringify(value));
    },
  ],
  [
    7,
    'another list of accounts',
    (draft, { random, issuer, acc }) => {
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
        Array.from({ length: 999 }, (_, i) => `n-${i}`).concat(acc),
        Array.from({ length: 1000 }, (_, i) => `n-${i}`).concat(acc),
        Array.from({ length: 1000 }, (_, i) => (i < 500 ? `n-${i}` : `n ${i}`)).concat('n-1', acc),
      ]);
      const isText = typeof source === 'string';
      const value = isText ? list : Object.fromEntries(list.map(name => [String(name), {}]));
      setClaim(draft.payload, placeOfSource(source, acc), JSON.stringify(random.chance(0.93) ? value : list));
    },
  ],
  [
    5,
    'another scope',
    (draft, { random, issuer, setup, acc }) => {
      const named = Object.keys(setup.settings.scopes ?? { billing: [] });
      const value = random.pick<unknown>([
        ...['', ' ', 'openid', named.join(' '), named.join('  '), ` ${named[0]}`, named[0], named.join(',')],
        ...[[], named, [...named, 1], [[named[0]]], null, 1, { [named[0] ?? 'x']: {} }, 'x '.repeat(101).trim()],
        ...[Array.from({ length: 101 }, () => 'x'), Array.from({ length: 100 }, () => 'x')],
      ]);
      setClaim(draft.payload, placeOfSource(issuer.claims.scope, acc), JSON.stringify(value));
    },
  ],
  [
    3,
    'another actor',
    (draft, { random, issuer }) => {
      const value = random.pick<unknown>(['agent', ...oddValues]);
      setClaim(draft.payload, issuer.claims.actor ?? 'actor', JSON.stringify(value));
    },
  ],
  [
    3,
    'another app',
    (draft, { random, issuer }) => {
      const app = random.pick(['web', 'mobile/2', 'WEB', 'web/', 'we', '*']);
      setClaim(draft.payload, issuer.claims.app, JSON.stringify(app));
    },
  ],
  [
    6,
    'another issuer',
    (draft, { random, issuer, setup }) => {
      const others = setup.settings.issuers.map(each => each.issuer);
      const near = [
        `${issuer.issuer}/`,
        issuer.issuer.toUpperCase(),
        ` ${issuer.issuer}`,
        `${issuer.issuer}\u0000`,
        [issuer.issuer],
        { iss: issuer.issuer },
        null,
        1,
      ];
      set(draft.payload, 'iss', random.pick([...others, ...others, ...near]));
    },
  ],
  [
    6,
    'another audience',
    (draft, { random, issuer }) => {
      const [own = ''] = issuer.audiences;
      const near = [
        `${own}2`,
        own.slice(0, -1),
        own.toUpperCase(),
        `${own} `,
        [],
        [[own]],
        [own, 1],
        { [own]: 1 },
        null,
        1,
        ['api2'],
        '',
        ['__proto__'],
        [own, own],
      ];
      set(draft.payload, 'aud', random.pick(near));
    },
  ],
  [
    2,
    'the audience twice in a list',
    (draft, { issuer }) => set(draft.payload, 'aud', [...issuer.audiences, ...issuer.audiences]),
  ],
  [
    6,
    'a time of an odd value',
    (draft, { random }) => {
      const value = random.pick([
        'null',
        '"9999999999"',
        '[]',
        '{}',
        'true',
        '0',
        '-1',
        '1e15',
        '1e400',
        '-1e400',
        '-1e308',
        `${baseTime}.5`,
        '-0',
        `"${baseTime}"`,
      ]);
      setText(draft.payload, random.pick(['exp', 'nbf', 'iat']), value);
    },
  ],
  [
    7,
    'times at their edges',
    (draft, { random, setup, edges }) => {
      const { maxLifetimeSeconds: longest, clockToleranceSeconds: tolerance } = setup.settings;
      const iat = baseTime - random.pick([0, 1, 60]);
      const exp = iat + longest + random.pick([-1, -0.25, 0, 0.25, 1]);
      set(draft.payload, 'iat', iat);
      set(draft.payload, 'exp', exp);
      edges.push(exp + tolerance, iat - tolerance);
    },
  ],
  [
    4,
    'nbf near the edge',
    (draft, { random, setup, edges }) => {
      const nbf = baseTime + random.pick([-60, 0, 0.5, 20]);
      set(draft.payload, 'nbf', nbf);
      edges.push(nbf - setup.settings.clockToleranceSeconds);
    },
  ],
  [
    2,
    'iat against exp',
    (draft, { random }) => {
      const exp = baseTime + 20;
      set(draft.payload, 'exp', exp);
      set(draft.payload, 'iat', exp + random.pick([-1, -0.25, 0, 0.25, 1]));
    },
  ],
  [
    6,
    'expired',
    (draft, { random, setup, edges }) => {
      const { clockToleranceSeconds: tolerance, maxLifetimeSeconds: longest } = setup.settings;
      const exp = baseTime - tolerance - random.pick([0, 0.25, 1, 50]);
      set(draft.payload, 'exp', exp);
      set(draft.payload, 'iat', exp - Math.min(longest, 100));
      edges.push(exp + tolerance);
    },
  ],
  [2, 'iat is absent', draft => drop(draft.payload, 'iat')],
  [2, 'another jti', (draft, { random }) => set(draft.payload, 'jti', random.pick([...tokenIds, ...oddValues]))],
  [
    5,
    'a claim twice',
    (draft, context) => {
      const { random } = context;
      const [name, value] = random.pick(draft.payload);
      const spelling = random.chance(0.4) ? escaped(name) : name;
      draft.payload.splice(random.below(draft.payload.length + 1), 0, [
        spelling,
        random.chance(0.5) ? value : '"acct2"',
      ]);
    },
  ],
  [
    3,
    'a claim of another case',
    (draft, context) => {
      const member = context.random.pick(draft.payload);
      member[0] = member[0].toUpperCase();
    },
  ],
  [
    5,
    'a further claim',
    (draft, { random }) => {
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
    },
  ],
  [2, 'cnf', draft => set(draft.payload, 'cnf', { jkt: 'x' })],
  [
    2,
    'a member twice in a nested object',
    draft => {
      draft.payload.push(['"nested"', '{"a":1,"b":[{"c":1,"\\u0063":2}]}']);
    },
  ],
  [
    2,
    'the same name in two objects',
    draft => {
      draft.payload.push(['"nested"', '{"acc":"acct2","b":[{"acc":1},{"acc":2}]}']);
    },
  ],
  [3, 'a claim with escapes for plain letters', (draft, { random }) => respell(random.pick(draft.payload))],
  [
    2,
    'a claim named by its escapes',
    (draft, { random }) => {
      const member = random.pick(draft.payload);
      member[0] = escaped(member[0]);
    },
  ],
  [
    3,
    'white space in the payload',
    (draft, { random }) => {
      const space = random.pick([' ', '\n', '\t\r\n', '\u00a0', '\f', '\ufeff']);
      draft.payloadText = json =>
        random.pick([`${space}${json}`, `${json}${space}`, json.replaceAll(',"', `,${space}"`)]);
    },
  ],
  [
    4,
    'a payload that is not the JSON of an object',
    (draft, { random }) => {
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
    },
  ],
  [
    3,
    'bytes in the payload that are no UTF-8',
    (draft, { random }) => {
      const bytes = random.pick([
        [0xff],
        [0xc0, 0xaf],
        [0xed, 0xa0, 0x80],
        [0xf5, 0x80, 0x80, 0x80],
        [0xe2, 0x82],
        [0x80],
      ]);
      draft.payloadText = json =>
        Buffer.concat([Buffer.from(json.replace(/}$/, ',"x":"')), Buffer.from(bytes), Buffer.from('"}')]);
    },
  ],
  [
    2,
    'a deep payload',
    draft => {
      draft.payload.push(['"deep"', '['.repeat(200) + ']'.repeat(200)]);
    },
  ],
];

const header: readonly Row[] = [
  [
    5,
    'another alg',
    (draft, { random }) =>
      set(
        draft.header,
        'alg',
        random.pick([
          'none',
          'None',
          'HS256',
          'rs256',
          'ES256K',
          'RS384',
          'ES384',
          'EdDSA',
          'Ed25519',
          'ES256',
          'RS256',
          '__proto__',
          '',
          ['ES256'],
          null,
          256,
        ]),
      ),
  ],
  [1, 'no alg', draft => drop(draft.header, 'alg')],
  [
    4,
    'another kid',
    (draft, { random, signer }) =>
      set(
        draft.header,
        'kid',
        random.pick([
          'k1',
          'k2',
          'K1',
          'k9',
          '',
          ' ',
          '../../dev/null',
          'constructor',
          '__proto__',
          `${signer.kid} `,
          1,
          null,
          [signer.kid],
          'k'.repeat(300),
        ]),
      ),
  ],
  [1, 'no kid', draft => drop(draft.header, 'kid')],
  [
    4,
    'another typ',
    (draft, { random }) =>
      set(
        draft.header,
        'typ',
        random.pick([
          'JWT',
          'jwt',
          'at+jwt',
          'AT+JWT',
          'application/at+jwt',
          'application/jwt',
          'application/application/jwt',
          'to\u212aen+jwt',
          'text/jwt',
          'id+jwt',
          'dpop+jwt',
          '',
          ' JWT',
          null,
          ['JWT'],
          1,
        ]),
      ),
  ],
  [
    2,
    'typ with the Kelvin sign for its k',
    draft => {
      const found = draft.header.find(([name]) => name === '"typ"');
      if (found !== undefined) found[1] = found[1].replace(/k/gi, '\u212a');
    },
  ],
  [2, 'no typ', draft => drop(draft.header, 'typ')],
  [
    4,
    'a header member that refuses',
    (draft, { random }) =>
      setOne(
        draft.header,
        random.pick([
          ['crit', ['b64']],
          ['crit', []],
          ['b64', true],
          ['b64', false],
          ['zip', 'DEF'],
          ['jwk', {}],
          ['jku', 'https://evil.test'],
          ['x5u', ''],
          ['crit', null],
        ]),
      ),
  ],
  [
    4,
    'a header member that is ignored',
    (draft, { random }) =>
      setOne(
        draft.header,
        random.pick([
          ['x5c', ['!']],
          ['x5t', 1],
          ['x5t#S256', 'x'],
          ['cty', 'JWT'],
          ['JKU', 'x'],
          ['__proto__', { crit: [] }],
          ['constructor', 1],
          ['nonce', ''],
        ]),
      ),
  ],
  [
    3,
    'a header member twice',
    (draft, { random }) => {
      const [name, value] = random.pick(draft.header);
      draft.header.push([random.chance(0.4) ? escaped(name) : name, value]);
    },
  ],
  [
    2,
    'a header that is not the JSON of an object',
    (draft, { random }) => {
      draft.headerText = random.pick<(json: string) => string>([
        json => `[${json}]`,
        json => `\ufeff${json}`,
        json => `${json}\0`,
        () => 'null',
        () => '',
      ]);
    },
  ],
  [2, 'white space in the header', draft => (draft.headerText = json => ` ${json.replaceAll(':', ': ')}\r\n`)],
];

const signatures: readonly Row[] = [
  [
    5,
    'signed by a stranger',
    (draft, { random, signer }) => {
      const stranger = random.pick(
        keyPairs()
          .strangers.filter(({ algorithms }) => algorithms.includes(signer.alg))
          .concat(keyPairs().strangers),
      );
      const alg = stranger.algorithms.includes(signer.alg) ? signer.alg : stranger.algorithms[0];
      draft.sign = input => signature(input, { kid: signer.kid, alg, pair: stranger });
    },
  ],
  [
    5,
    'signed by another published key',
    (draft, { random, setup, signer }) => {
      const all = [...setup.signers.values()]
        .flatMap(({ good, bad }) => [...good, ...bad])
        .filter(each => each !== signer);
      const other = all.length === 0 ? signer : random.pick(all);
      if (random.chance(0.5)) set(draft.header, 'alg', other.alg);
      if (random.chance(0.3)) set(draft.header, 'kid', other.kid);
      draft.sign = input => signature(input, other);
    },
  ],
  [
    3,
    'HS256 keyed with the public key',
    (draft, { random, signer }) => {
      const format = random.pick(['pem', 'der'] as const);
      if (random.chance(0.8)) set(draft.header, 'alg', 'HS256');
      draft.sign = input => hmacWithPublicKey(input, signer, format);
    },
  ],
  [
    2,
    'the twin of an ES256 signature',
    (draft, { signer }) => {
      if (signer.alg === 'ES256') draft.sign = input => twinSignature(signature(input, signer));
    },
  ],
  [
    2,
    'a DER signature',
    (draft, { signer }) => {
      if (signer.alg.startsWith('ES')) draft.sign = input => derSignature(input, signer);
    },
  ],
  [
    4,
    'a signature of odd bytes',
    (draft, { random, signer }) => {
      draft.sign = input => {
        const good = signature(input, signer);
        return random.pick([
          Buffer.alloc(good.length),
          good.subarray(1),
          good.subarray(0, -1),
          Buffer.concat([good, Buffer.alloc(1)]),
          Buffer.concat([Buffer.alloc(1), good]),
          Buffer.concat([good, good]),
          Buffer.from([0]),
        ]);
      };
    },
  ],
];

// Index of the changed segment: 0 header, 1 payload, 2 signature.
const bytes: readonly Row[] = [
  [
    6,
    'a character flipped',
    (draft, { random }) =>
      finish(draft, random.below(3), text => flipped(text, random.below(text.length), random.below(64))),
  ],
  [
    5,
    'the last character of a segment flipped',
    (draft, { random }) => finish(draft, random.below(3), text => flipped(text, text.length - 1, random.below(64))),
  ],
  [
    4,
    'a character put in',
    (draft, { random }) => {
      const char = random.pick(['=', '==', ' ', '\n', '\t', '+', '/', '.', '..', '\0', 'A', '\u00e9', '~', '%3d', '!']);
      finish(draft, random.below(3), text =>
        random.pick([text + char, char + text, text.slice(0, 5) + char + text.slice(5)]),
      );
    },
  ],
  [
    3,
    'a segment that is cut',
    (draft, { random }) => finish(draft, random.below(3), text => text.slice(0, random.below(text.length))),
  ],
  [
    3,
    'segments too few, too many or in another order',
    (draft, { random }) => {
      draft.finish.push(token => {
        const [h = '', p = '', s = ''] = token.split('.');
        return random.pick([
          `${h}.${p}`,
          `${h}.${p}.`,
          `.${p}.${s}`,
          `${h}..${s}`,
          `${h}.${p}.${s}.`,
          `.${token}`,
          `${token}.${s}`,
          `${h}.${p}.${p}.${s}.${s}`,
          `${p}.${h}.${s}`,
          h,
          '.',
          '...',
          `${token}.`,
        ]);
      });
    },
  ],
  [
    5,
    'claims exchanged under a signature of others',
    (draft, { random, issuer }) => {
      draft.finish.push(token => {
        const [h = '', p = '', s = ''] = token.split('.');
        const json = Buffer.from(p, 'base64url').toString();
        const other = random.pick([
          json.replace(/"acct1"/, '"acct2"'),
          `${json} `,
          json.replace(placeOfSource(issuer.claims.role, 'acct1'), 'x'),
          json.replace('owner', 'admin'),
        ]);
        return `${h}.${base64url(other)}.${s}`;
      });
    },
  ],
  [
    3,
    'unused bits set, signed over',
    (draft, { random }) => {
      const odd = (segment: string): string => {
        const last = alphabet.indexOf(segment.at(-1) ?? 'A');
        return segment.slice(0, -1) + (alphabet[last + 1] ?? 'A');
      };
      if (random.chance(0.5)) draft.headerSegment = odd;
      else draft.payloadSegment = odd;
    },
  ],
  [
    3,
    'padding or white space, signed over',
    (draft, { random }) => {
      const more = random.pick(['=', '==', '\n', ' ', '\u200b']);
      if (random.chance(0.5)) draft.headerSegment = segment => segment + more;
      else draft.payloadSegment = segment => segment + more;
    },
  ],
  [
    2,
    'classic base64',
    draft => {
      draft.finish.push(token => token.replaceAll('-', '+').replaceAll('_', '/'));
    },
  ],
];

const lengths: readonly Row[] = [
  [
    4,
    'as long as maxBytes, or one more',
    (draft, { random, setup, signer }) => {
      const { maxBytes } = setup.settings;
      const target = maxBytes + random.pick([-1, 0, 0, 1, 2]);
      draft.payload.push(['"fill"', '""']);
      // Three bytes encode to four characters, so the exact length is reached in three of four cases; the oracle counts again.
      draft.payloadText = json => {
        const signatureLength = Math.ceil((signature('', signer).length * 4) / 3);
        const headerLength = Math.ceil((Buffer.byteLength(jsonOf(draft.header)) * 4) / 3);
        const room = Math.floor(((target - signatureLength - headerLength - 2) * 3) / 4) - Buffer.byteLength(json);
        return json.replace('"fill":""', `"fill":"${'x'.repeat(Math.max(0, room))}"`);
      };
    },
  ],
  [
    1,
    'far longer than maxBytes',
    draft => {
      draft.finish.push(token => `${token}${'A'.repeat(70_000)}`);
    },
  ],
];

const rows: readonly Row[] = [...claims, ...header, ...signatures, ...bytes, ...lengths];

function requiredClaim({ random, issuer, acc }: TokenContext): string {
  const { uid, app, acc: accounts, role } = issuer.claims;
  return random.pick(['iss', 'aud', 'exp', uid, app, placeOfSource(accounts, acc), placeOfSource(role, acc)]);
}

function identityClaim({ random, issuer, acc }: TokenContext): string {
  const { uid, app, acc: accounts, role } = issuer.claims;
  return placeOfSource(random.pick([accounts, accounts, uid, app, accounts, role]), acc);
}

function numbered(roles: readonly string[], acc: string): readonly (readonly [string, unknown])[] {
  return roles.map((role, i) => [role === 'r' ? `r${i}` : role, { [acc]: 'x' }]);
}

function setOne(members: Member[], [name, value]: readonly [name: string, value: unknown]): void {
  set(members, name, value);
}

function setText(members: Member[], name: string, text: string): void {
  set(members, name, 0);
  const found = members.find(([each]) => each === JSON.stringify(name));
  if (found !== undefined) found[1] = text;
}

/** The JSON text of a name with each letter escaped. */
function escaped(literal: string): string {
  return literal.replace(/[A-Za-z]/g, letter => `\\u00${letter.charCodeAt(0).toString(16)}`);
}

function respell(member: Member): void {
  if (member[1].startsWith('"') && !member[1].includes('\\')) member[1] = escaped(member[1]);
}

function finish(draft: TokenDraft, index: number, change: (segment: string) => string): void {
  draft.finish.push(token =>
    token
      .split('.')
      .map((segment, i) => (i === index ? change(segment) : segment))
      .join('.'),
  );
}

function flipped(text: string, at: number, by: number): string {
  const char = alphabet[(alphabet.indexOf(text[at] ?? 'A') + 64 + by) % 64] ?? 'A';
  return text.slice(0, at) + char + text.slice(at + 1);
}

function jsonOf(members: readonly Member[]): string {
  return `{${members.map(member => member.join(':')).join(',')}}`;
}
