// Generated tokens: a valid one for an issuer of the setup, with none, one or a few changes, most of them small.
import { claimedNames } from '../oracle/settings.ts';
import { listInForm, placeOfSource, setClaim, sourcesOf } from './claim-places.ts';
import { accounts, baseTime, certificates, hostAccounts, tokenIds, uids } from './identities.ts';
import type { Random } from './random.ts';
import type { Setup, Signer } from './setup.ts';
import { changeToken } from './token-changes.ts';
import {
  createDraft,
  type GeneratedToken,
  type Member,
  type TokenContext,
  type TokenDraft,
  tokenText,
} from './token-draft.ts';

export function generateToken(random: Random, setup: Setup): GeneratedToken {
  const { settings } = setup;
  const issuer = random.pick(settings.issuers);
  const isOfOneAccount = issuer.issuer.includes('{acc}');
  const fitting = issuer.issuer.startsWith('https://{acc}') ? hostAccounts : accounts;
  const known = fitting.filter(each => isUsable(each, issuer, settings));
  const acc = random.pick(random.chance(0.97) && known.length > 0 ? known : accounts);
  const iss = issuer.issuer.replace('{acc}', acc);
  const signer = pickSigner(random, setup, issuer.hasOwnKeySets ? iss : issuer.issuer);
  const others = random.chance(0.35) ? random.some([...known, 'a.b', '', 'a b', 'other:x'], 1) : [];
  const isAlone = typeof issuer.claims.acc === 'string' && others.length === 0;
  const own = random.chance(0.5) ? [acc, ...others] : [...others, acc];
  const role = random.chance(0.94)
    ? random.pick(claimedNames(settings.roles))
    : random.pick(['viewer', '*', 'constructor', 'OWNER']);
  const app =
    random.chance(0.94) && !settings.apps.includes('*')
      ? random.pick(settings.apps)
      : random.pick(['web', 'mobile/2', '*', 'Web']);
  const asClaim = (text: string): unknown =>
    issuer.allowIntegerClaims && String(Number(text)) === text && random.chance(0.7) ? Number(text) : text;

  const life = Math.min(settings.maxLifetimeSeconds, random.pick([90, 600, 3600, 86_400]));
  const iat = baseTime - Math.floor(life / 2);
  const exp = iat + life;
  const payload: Member[] = [];
  const claim = (name: string, value: unknown): void => setClaim(payload, name, JSON.stringify(value));
  claim('iss', iss);
  claim(issuer.claims.aud, random.chance(0.5) ? random.pick(issuer.audiences) : ['other', ...issuer.audiences]);
  const hasIat = random.chance(0.85);
  if (hasIat) claim('iat', iat);
  claim('exp', exp);
  for (const name of ['jti', 'sid']) if (random.chance(0.6)) claim(name, random.pick(tokenIds));
  const claimField = (sources: readonly string[], value: unknown): void => {
    const at = random.below(sources.length);
    // What is no value does not count; what stands behind the one that counts is not looked at.
    for (const before of sources.slice(0, at)) if (random.chance(0.5)) claim(before, random.pick([null, '']));
    for (const behind of sources.slice(at + 1)) if (random.chance(0.2)) claim(behind, random.pick([7, 'x', ['x']]));
    claim(sources[at] ?? '', value);
  };
  claimField(sourcesOf(issuer.claims.uid), asClaim(random.pick(uids)));
  claimField(sourcesOf(issuer.claims.app), app);
  for (const source of Object.values(settings.forwardClaims))
    if (random.chance(0.7) && !isRead(source, issuer)) claim(source, random.pick(forwardedValues));
  claim(
    placeOfSource(issuer.claims.acc, acc),
    isAlone ? asClaim(acc) : listInForm(issuer.claims.acc, own.map(asClaim)),
  );
  const bound = random.chance(0.12) ? random.pick(certificates) : undefined;
  if (bound !== undefined) claim('cnf', { 'x5t#S256': bound.thumbprint });
  writeRoles(random, setup, issuer, { payload, acc, own, role });
  if (settings.scopes !== undefined && random.chance(0.93)) {
    const scopes = scopeList(random, Object.keys(settings.scopes));
    claim(placeOfSource(issuer.claims.scope, acc), random.chance(0.6) ? scopes.join(' ') : scopes);
  }
  if (issuer.claims.actor !== undefined && random.chance(0.6))
    claim(issuer.claims.actor, asClaim(random.pick(['agent-1', '17', 'a', ...uids])));
  const header: Member[] = [['"alg"', JSON.stringify(signer.alg)]];
  if (signer.kid !== undefined && random.chance(0.95)) header.push(['"kid"', JSON.stringify(signer.kid)]);
  if (random.chance(0.15))
    header.push([random.pick(['"x5t"', '"x5t#S256"']), random.pick(['"own"', '"own"', '"other"'])]);
  const type = random.pick(issuer.tokenTypes);
  if (type !== '') header.splice(1, 0, ['"typ"', JSON.stringify(random.pick(spellings(type)))]);

  const tolerance = settings.clockToleranceSeconds;
  const edges = [
    exp + tolerance,
    hasIat ? iat - tolerance : exp - settings.maxLifetimeSeconds,
    ...settings.revoked
      .flatMap(({ expires }) => (expires === undefined ? [] : [Date.parse(expires) / 1000]))
      .slice(0, 2),
  ];
  const draft: TokenDraft = createDraft(header, payload, signer);
  const count = random.weighted([
    [40, 0],
    [48, 1],
    [9, 2],
    [3, 4],
  ]);
  const context: TokenContext = { random, setup, signer, issuer, acc, edges };
  const changes = Array.from({ length: count }, () => changeToken(draft, context));
  return {
    text: tokenText(draft),
    changes,
    edges,
    acc,
    accounts: isOfOneAccount ? [acc] : own,
    role,
    certificate: bound?.pem ?? '',
  };
}

const forwardedValues: readonly unknown[] = [
  ...['a@b.test', 'x', 'Zo "x", y; z', 'x'.repeat(256), 7, -1, 2 ** 53 - 1, true, false],
  ...['', ' a', 'a ', 'a  b', 'a\r\nb', '\u00e9', 'x'.repeat(257), 1.5, 2 ** 53, null, [], {}, ['a']],
];

/** Whether the token needs what is there. */
function isRead(source: string, { claims }: TokenContext['issuer']): boolean {
  const top = (each: string): string => each.replace(/^\//, '').split('/', 1)[0] ?? '';
  const { uid, app, aud, acc, role, scope, actor = '' } = claims;
  const read = [
    ...sourcesOf(uid),
    ...sourcesOf(app),
    aud,
    scope,
    actor,
    placeOfSource(acc, ''),
    placeOfSource(role, ''),
  ];
  return ['iat', ...read.map(top)].includes(top(source));
}

/** Whether an account of this name counts, by the grammar and the accounts of the issuer. */
function isUsable(
  name: string,
  { accounts: covered }: TokenContext['issuer'],
  { dots, lower }: Setup['settings'],
): boolean {
  if ((!dots && name.includes('.')) || (lower && /[A-Z]/.test(name))) return false;
  const names = (entry: string): boolean =>
    entry.endsWith('*') ? name.startsWith(entry.slice(0, -1)) : name === entry;
  return covered.some(names) && !covered.some(entry => entry.startsWith('!') && names(entry.slice(1)));
}

interface WrittenRoles {
  readonly payload: Member[];
  readonly acc: string;
  readonly own: readonly string[];
  readonly role: string;
}

/** The roles in the form that the issuer's source reads; with `{acc}`, others for its other accounts. */
function writeRoles(
  random: Random,
  setup: Setup,
  issuer: TokenContext['issuer'],
  { payload, acc, own, role }: WrittenRoles,
): void {
  const source = issuer.claims.role;
  const named = claimedNames(setup.settings.roles);
  const write = (account: string, roles: readonly string[]): void => {
    const place = placeOfSource(source, account);
    if (typeof source === 'string') {
      const [first = '', ...others] = roles;
      const isOne = others.length === 0 && random.chance(0.6);
      const isNumber = issuer.allowIntegerClaims && String(Number(first)) === first && random.chance(0.7);
      setClaim(payload, place, JSON.stringify(isOne ? (isNumber ? Number(first) : first) : roles));
    } else if ('wordsOf' in source) {
      setClaim(payload, place, JSON.stringify(listInForm(source, roles)));
    } else {
      const holders = (each: string): unknown =>
        objectOf(
          each === role || random.chance(0.4) ? [acc, ...random.some(own)] : random.some(own),
          () => 'acme.test',
        );
      const odd = (): unknown => random.pick<unknown>([[acc], acc, null, true, {}]);
      setClaim(
        payload,
        place,
        JSON.stringify(objectOf(roles, each => (each !== role && random.chance(0.1) ? odd() : holders(each)))),
      );
    }
  };
  const list = random.chance(0.5) ? roleList(random, setup, role) : [role];
  const isByAccount = placeOfSource(source, 'a') !== placeOfSource(source, 'b');
  const others = isByAccount ? own.filter(account => account !== acc) : [];
  for (const account of others) if (random.chance(0.6)) write(account, random.some(named));
  write(acc, list);
}

function objectOf(names: readonly string[], value: (name: string) => unknown): unknown {
  return Object.fromEntries(names.map(name => [name, value(name)]));
}

function scopeList(random: Random, named: readonly string[]): readonly string[] {
  const own = random.chance(0.6) ? named : random.some(named);
  return [...random.some(['openid', 'profile', 'Billing']), ...own].sort(() => random.pick([-1, 1]));
}

/** The roles in any order, with others that the configuration names and with strings that it does not name. */
function roleList(random: Random, { settings }: Setup, role: string): readonly string[] {
  const roles = [role];
  const others = [...random.some(claimedNames(settings.roles)), ...random.some(strayRoles)];
  for (const other of others) roles.splice(random.below(roles.length + 1), 0, other);
  return roles;
}

const strayRoles = [
  'offline_access',
  'uma authorization',
  '',
  'Owner',
  'owner,admin',
  'x'.repeat(129),
  '\u212a',
  '__proto__',
];

/** A known token with a small change to its text: a cache must not confuse the two. */
export function alterToken(random: Random, token: GeneratedToken, other: GeneratedToken): GeneratedToken {
  const [header = '', payload = '', signature = ''] = token.text.split('.');
  const [, otherPayload = '', otherSignature = ''] = other.text.split('.');
  const at = random.below(signature.length);
  const text = random.pick([
    `${header}.${payload}.${signature.slice(0, -1)}${random.pick(['A', 'Q', 'g', 'w', 'B'])}`,
    `${header}.${payload}.${signature.slice(0, at)}${random.pick(['A', 'B', '_'])}${signature.slice(at + 1)}`,
    `${header}.${payload}.${signature}=`,
    `${header}.${payload}.${otherSignature}`,
    `${header}.${otherPayload}.${signature}`,
    `${header}.${payload.slice(0, -2)}${payload.slice(-1)}.${signature}`,
    `${payload}.${header}.${signature}`,
    `${token.text}.`,
    token.text.toLowerCase(),
  ]);
  return { ...token, text, changes: [...token.changes, 'a known token altered'] };
}

// Signatures with RSA and with the larger curves are slow, so there are fewer of them.
function pickSigner(random: Random, setup: Setup, issuer: string): Signer {
  const own = setup.signers.get(issuer) ?? [...setup.signers.values()][0];
  if (own === undefined) throw new Error('a configuration without signers');
  if (random.chance(0.04) && own.bad.length > 0) return random.pick(own.bad);
  const fast = own.good.filter(({ alg }) => alg === 'ES256' || alg.startsWith('Ed'));
  return random.pick(fast.length > 0 && random.chance(0.9) ? fast : own.good);
}

// RFC 7515 section 4.1.9: case-insensitive, with an optional `application/` before a name without a slash.
function spellings(type: string): readonly string[] {
  const short = type.replace(/^application\/(?=[^/]*$)/, '');
  const all = short.includes('/') ? [short] : [short, `application/${short}`];
  return [type, ...all, ...all.map(each => each.toUpperCase()), ...all.map(each => each.toLowerCase())];
}
