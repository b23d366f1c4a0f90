// Changes to a token, invalid or unusual but valid, one at a time: its claims, its header, its signature, its bytes.
import { pickRow } from './changes.ts';
import { claims } from './claim-changes.ts';
import { placeOfSource } from './claim-places.ts';
import { keyPairs } from './key-pairs.ts';
import { words } from './random.ts';
import {
  base64url,
  derSignature,
  drop,
  escaped,
  hmacWithPublicKey,
  type Member,
  row,
  set,
  signature,
  type TokenContext,
  type TokenDraft,
  type TokenRow,
  twinSignature,
} from './token-draft.ts';

/** Makes one change and returns its name. */
export function changeToken(draft: TokenDraft, context: TokenContext): string {
  const [, name, change] = pickRow(context.random, rows);
  change(draft, context);
  return name;
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

const header: readonly TokenRow[] = [
  row(5, 'another alg', (draft, { random }) =>
    set(
      draft.header,
      'alg',
      random.pick([
        ...words('none None HS256 rs256 ES256K RS384 ES384 EdDSA Ed25519 ES256 RS256 __proto__'),
        '',
        ['ES256'],
        null,
        256,
      ]),
    ),
  ),
  row(1, 'no alg', draft => drop(draft.header, 'alg')),
  row(4, 'another kid', (draft, { random, signer }) =>
    set(
      draft.header,
      'kid',
      random.pick([
        ...words(`k1|k2|K1|k9|| |../../dev/null|constructor|__proto__|${signer.kid} |${'k'.repeat(300)}`, '|'),
        1,
        null,
        [signer.kid],
      ]),
    ),
  ),
  row(1, 'no kid', draft => drop(draft.header, 'kid')),
  row(4, 'another typ', (draft, { random }) =>
    set(
      draft.header,
      'typ',
      random.pick([
        ...words('JWT jwt at+jwt AT+JWT application/at+jwt application/jwt application/application/jwt'),
        ...words('text/jwt id+jwt dpop+jwt'),
        ...words('to\u212aen+jwt|| JWT', '|'),
        null,
        ['JWT'],
        1,
      ]),
    ),
  ),
  row(2, 'typ with the Kelvin sign for its k', draft => {
    const found = draft.header.find(([name]) => name === '"typ"');
    if (found !== undefined) found[1] = found[1].replace(/k/gi, '\u212a');
  }),
  row(2, 'no typ', draft => drop(draft.header, 'typ')),
  row(4, 'a header member that refuses', (draft, { random }) =>
    setOne(
      draft.header,
      random.pick([
        ['crit', random.pick([['b64'], [], null])],
        ['b64', random.chance(0.5)],
        ['zip', 'DEF'],
        ['jwk', random.pick([{}, null])],
      ]),
    ),
  ),
  row(4, 'a header member that is ignored', (draft, { random }) =>
    setOne(
      draft.header,
      random.pick([
        ['x5c', ['!']],
        ['x5t', random.pick([1, 'own', 'Own'])],
        ['x5t#S256', 'own'],
        [random.pick(words('jku x5u cty JKU constructor nonce')), 'https://evil.test'],
        ['__proto__', { crit: [] }],
      ]),
    ),
  ),
  row(3, 'a header member twice', (draft, { random }) => {
    const [name, value] = random.pick(draft.header);
    draft.header.push([random.chance(0.4) ? escaped(name) : name, value]);
  }),
  row(2, 'a header that is not the JSON of an object', (draft, { random }) => {
    draft.headerText = random.pick<(json: string) => string>([
      json => `[${json}]`,
      json => `\ufeff${json}`,
      json => `${json}\0`,
      () => 'null',
      () => '',
    ]);
  }),
  row(2, 'white space in the header', draft => (draft.headerText = json => ` ${json.replaceAll(':', ': ')}\r\n`)),
];

const signatures: readonly TokenRow[] = [
  row(5, 'signed by a stranger', (draft, { random, signer }) => {
    const stranger = random.pick(
      keyPairs()
        .strangers.filter(({ algorithms }) => algorithms.includes(signer.alg))
        .concat(keyPairs().strangers),
    );
    const alg = stranger.algorithms.includes(signer.alg) ? signer.alg : stranger.algorithms[0];
    draft.sign = input => signature(input, { kid: signer.kid, alg, pair: stranger });
  }),
  row(5, 'signed by another published key', (draft, { random, setup, signer }) => {
    const all = [...setup.signers.values()]
      .flatMap(({ good, bad }) => [...good, ...bad])
      .filter(each => each !== signer);
    const other = all.length === 0 ? signer : random.pick(all);
    if (random.chance(0.5)) set(draft.header, 'alg', other.alg);
    if (random.chance(0.3) && other.kid !== undefined) set(draft.header, 'kid', other.kid);
    draft.sign = input => signature(input, other);
  }),
  row(3, 'HS256 keyed with the public key', (draft, { random, signer }) => {
    const format = random.pick(['pem', 'der'] as const);
    if (random.chance(0.8)) set(draft.header, 'alg', 'HS256');
    draft.sign = input => hmacWithPublicKey(input, signer, format);
  }),
  row(2, 'the twin of an ES256 signature', (draft, { signer }) => {
    if (signer.alg === 'ES256') draft.sign = input => twinSignature(signature(input, signer));
  }),
  row(2, 'a DER signature', (draft, { signer }) => {
    if (signer.alg.startsWith('ES')) draft.sign = input => derSignature(input, signer);
  }),
  row(4, 'a signature of odd bytes', (draft, { random, signer }) => {
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
  }),
];

// Index of the changed segment: 0 header, 1 payload, 2 signature.
const bytes: readonly TokenRow[] = [
  row(6, 'a character flipped', (draft, { random }) =>
    finish(draft, random.below(3), text => flipped(text, random.below(text.length), random.below(64))),
  ),
  row(5, 'the last character of a segment flipped', (draft, { random }) =>
    finish(draft, random.below(3), text => flipped(text, text.length - 1, random.below(64))),
  ),
  row(4, 'a character put in', (draft, { random }) => {
    const char = random.pick(['=', '==', ' ', '\n', '\t', '+', '/', '.', '..', '\0', 'A', '\u00e9', '~', '%3d', '!']);
    finish(draft, random.below(3), text =>
      random.pick([text + char, char + text, text.slice(0, 5) + char + text.slice(5)]),
    );
  }),
  row(3, 'a segment that is cut', (draft, { random }) =>
    finish(draft, random.below(3), text => text.slice(0, random.below(text.length))),
  ),
  row(3, 'segments too few, too many or in another order', (draft, { random }) => {
    draft.finish.push(token => {
      const [h = '', p = '', s = ''] = token.split('.');
      return random.pick([
        ...words(`${h}.${p} ${h}.${p}. .${p}.${s} ${h}..${s} ${h}.${p}.${s}. .${token} ${token}.${s}`),
        ...words(`${h}.${p}.${p}.${s}.${s} ${p}.${h}.${s} . ... ${token}.`),
        h,
      ]);
    });
  }),
  row(5, 'claims exchanged under a signature of others', (draft, { random, issuer }) => {
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
  }),
  row(3, 'unused bits set, signed over', (draft, { random }) => {
    const odd = (segment: string): string => {
      const last = alphabet.indexOf(segment.at(-1) ?? 'A');
      return segment.slice(0, -1) + (alphabet[last + 1] ?? 'A');
    };
    if (random.chance(0.5)) draft.headerSegment = odd;
    else draft.payloadSegment = odd;
  }),
  row(3, 'padding or white space, signed over', (draft, { random }) => {
    const more = random.pick(['=', '==', '\n', ' ', '\u200b']);
    if (random.chance(0.5)) draft.headerSegment = segment => segment + more;
    else draft.payloadSegment = segment => segment + more;
  }),
  row(2, 'classic base64', draft => {
    draft.finish.push(token => token.replaceAll('-', '+').replaceAll('_', '/'));
  }),
];

const lengths: readonly TokenRow[] = [
  row(4, 'as long as maxBytes, or one more', (draft, { random, setup, signer }) => {
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
  }),
  row(1, 'far longer than maxBytes', draft => {
    draft.finish.push(token => `${token}${'A'.repeat(70_000)}`);
  }),
];

const rows: readonly TokenRow[] = [...claims, ...header, ...signatures, ...bytes, ...lengths];

function setOne(members: Member[], [name, value]: readonly [name: string, value: unknown]): void {
  set(members, name, value);
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
