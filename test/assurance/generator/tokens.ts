// Generated tokens: a valid one for an issuer of the setup, with none, one or a few changes, most of them small.
import { setClaim } from './claim-places.ts';
import { accounts, baseTime, tokenIds, uids } from './identities.ts';
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
  const signer = pickSigner(random, setup, issuer.issuer);
  const acc = random.pick(accounts);
  const role = random.chance(0.94)
    ? random.pick(Object.keys(settings.roles))
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
  claim('iss', issuer.issuer);
  claim('aud', random.chance(0.5) ? random.pick(issuer.audiences) : ['other', ...issuer.audiences]);
  const hasIat = random.chance(0.85);
  if (hasIat) claim('iat', iat);
  claim('exp', exp);
  if (random.chance(0.6)) claim('jti', random.pick(tokenIds));
  claim(issuer.claims.uid, asClaim(random.pick(uids)));
  claim(issuer.claims.app, app);
  claim(issuer.claims.acc, asClaim(acc));
  claim(issuer.claims.role, random.chance(0.4) ? roleList(random, setup, role) : asClaim(role));
  const header: Member[] = [
    ['"alg"', JSON.stringify(signer.alg)],
    ['"kid"', JSON.stringify(signer.kid)],
  ];
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
  return { text: tokenText(draft), changes, edges, acc, role };
}

/** The roles in any order, with others that the configuration names and with strings that it does not name. */
function roleList(random: Random, { settings }: Setup, role: string): readonly string[] {
  const roles = [role];
  const others = [...random.some(Object.keys(settings.roles)), ...random.some(strayRoles)];
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
  const own = setup.signers.get(issuer);
  if (own === undefined) throw new Error('an issuer without signers');
  if (random.chance(0.04) && own.bad.length > 0) return random.pick(own.bad);
  const fast = own.good.filter(({ alg }) => alg === 'ES256' || alg.startsWith('Ed'));
  return random.pick(fast.length > 0 && random.chance(0.8) ? fast : own.good);
}

// RFC 7515 section 4.1.9: case-insensitive, with an optional `application/` before a name without a slash.
function spellings(type: string): readonly string[] {
  const short = type.replace(/^application\/(?=[^/]*$)/, '');
  const all = short.includes('/') ? [short] : [short, `application/${short}`];
  return [type, ...all, ...all.map(each => each.toUpperCase()), ...all.map(each => each.toLowerCase())];
}
