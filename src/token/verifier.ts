// Verifies a token and returns its claims, from the cache or by its signature.
import type { DetailOf } from '../authz/checks.ts';
import { accountInIssuer, parseIssuerTemplate } from '../authz/issuer-template.ts';
import { type AccountGrammar, type SignedIdentity, toUnaddressed } from '../authz/principal.ts';
import { type Refusal, refusal } from '../authz/refusal.ts';
import { memberOf } from '../json/strict-json.ts';
import type { VerificationKey } from '../keys/jwks.ts';
import type { IssuerRing, KeyLookup } from '../keys/key-ring.ts';
import {
  type ClaimRules,
  type Claims,
  type Client,
  checkBinding,
  checkTimes,
  parseClaims,
  type TimeRules,
} from './claims.ts';
import { type CompactJws, parseCompactJws } from './compact.ts';
import { parseSignedIdentity } from './identity-claims.ts';
import { isSignedBy } from './signature.ts';
import { nameOf, type VerifiedToken, type VerifiedTokens } from './verified-tokens.ts';

/** The keys of one issuer. */
export type IssuerKeys = Pick<IssuerRing, 'isInForce' | 'find'>;

export interface TrustedIssuer {
  readonly rules: ClaimRules;
  readonly algorithms: ReadonlySet<string>;
  /** Normalized by `normalizeTokenType`; '' allows an absent `typ`. */
  readonly tokenTypes: ReadonlySet<string>;
  readonly keys: IssuerKeys;
}

export interface Verification {
  readonly outcome: Claims | Refusal;
  /** What a refused token says, if its signature is verified. */
  readonly signed: SignedIdentity | undefined;
  /** The `kid` of the token's header, verified or not, or of the key that verified it; for the log. */
  readonly kid: string | undefined;
  /** Undefined if the cache was not asked. */
  readonly cache: 'hit' | 'miss' | undefined;
}

/** What is true of a token whoever sends it: a refusal, or claims that its sender and the time are still to be compared with. */
type Reading = Verification | (VerifiedToken<VerificationKey> & { readonly outcome: undefined });

interface TokenVerifier {
  /** Synchronous for a cached token, and for a refusal that needs neither key nor signature. Throws and rejects only on an internal error. */
  verify(token: string, client: Client): Verification | Promise<Verification>;
}

export function createTokenVerifier(options: {
  readonly issuers: IssuerFinder<TrustedIssuer>;
  readonly times: TimeRules;
  readonly maxBytes: number;
  readonly verifiedTokens: VerifiedTokens<VerificationKey>;
  /** The limit of signature checks in flight; a further token is refused. */
  readonly maxSignatures: number;
  /** Wall time in seconds since the epoch. */
  readonly now: () => number;
}): TokenVerifier {
  const { issuers, times, maxBytes, verifiedTokens, maxSignatures, now } = options;
  /** Singleflight: one verification per token at a time, whoever sends it. By name, as V8 keeps each key of a map in a table of its own. */
  const inFlight = new Map<string, Promise<Reading>>();
  let signatures = 0;

  function verifyKnown(name: string, client: Client): Verification | undefined {
    const known = verifiedTokens.get(name);
    if (known === undefined) return undefined;
    const { claims, key } = known;
    if (issuers.get(claims.identity.iss)?.keys.isInForce(key) !== true) {
      verifiedTokens.remove(name);
      return undefined;
    }
    const verification = judge(known, client, 'hit');
    const { outcome } = verification;
    if (outcome.kind === 'refusal' && outcome.reason === 'token_expired') verifiedTokens.remove(name);
    return verification;
  }

  function judge(
    { claims, key }: VerifiedToken<VerificationKey>,
    client: Client,
    cache: Verification['cache'],
  ): Verification {
    const refused = checkBinding(claims.certificate, client) ?? checkTimes(claims, times, now());
    const signed = refused && toUnaddressed(claims.identity);
    return { outcome: refused ?? claims, signed, kid: key.kid, cache };
  }

  // Refuses before the signature if possible, the cheapest reason first.
  function verifyNew(token: string, name: string): Verification | Promise<Reading> {
    const jws = parseCompactJws(token);
    if (jws.kind === 'refusal') return refused(jws, undefined);
    // The unverified claim only selects a configured issuer, whose keys must then verify the token.
    const iss = memberOf(jws.payload, 'iss');
    const issuer = typeof iss === 'string' ? issuers.get(iss) : undefined;
    if (issuer === undefined)
      return refused(invalid(iss === undefined ? 'there is no iss' : 'iss is not a configured issuer'), jws.kid);
    if (!issuer.algorithms.has(jws.alg))
      return refused(
        invalid(jws.alg.startsWith('HS') ? 'alg is a shared secret' : 'alg is not one of algorithms'),
        jws.kid,
      );
    if (!issuer.tokenTypes.has(jws.typ === undefined ? '' : normalizeTokenType(jws.typ)))
      return refused(invalid('typ is not one of tokenTypes'), jws.kid);
    const verify = (found: KeyLookup): Verification | Promise<Reading> => {
      if (found.kind === 'key') return verifySignature(token, name, jws, issuer, found.key);
      return refused(
        found.kind === 'unavailable' ? refusal('keys_unavailable', found.detail) : invalid(found.detail),
        jws.kid,
      );
    };
    const lookup = issuer.keys.find(jws);
    return lookup instanceof Promise ? lookup.then(verify) : verify(lookup);
  }

  async function verifySignature(
    token: string,
    name: string,
    jws: CompactJws,
    { rules, keys }: TrustedIssuer,
    key: VerificationKey,
  ): Promise<Reading> {
    const cryptoKey = key.cryptoKeyFor(jws.alg);
    if (cryptoKey === undefined) throw new Error('a key that does not fit the token');
    if (signatures >= maxSignatures)
      return refused(refusal('internal', 'too many tokens wait for their verification'), jws.kid);
    signatures += 1;
    try {
      if (!(await isSignedBy(cryptoKey, jws.alg, token)))
        return refused(invalid('the signature does not verify'), jws.kid);
    } finally {
      signatures -= 1;
    }
    // From here on the log names the key of a token without a kid too.
    const claims = parseClaims(jws.payload, rules);
    if (claims.kind === 'refusal') return refused(claims, key.kid, parseSignedIdentity(jws.payload, rules));
    const reading = { outcome: undefined, claims, key };
    // Refusals are never cached.
    if (checkTimes(claims, times, now()) !== undefined) return reading;
    // The key set may have changed during the signature check: a removed key proves nothing.
    if (!keys.isInForce(key)) return refused(refusal('keys_unavailable', 'the key was replaced meanwhile'), key.kid);
    verifiedTokens.put(name, { claims, key });
    return reading;
  }

  return {
    verify(token, client) {
      if (token.length > maxBytes)
        return { outcome: invalid('longer than maxBytes'), signed: undefined, kid: undefined, cache: undefined };
      // A text without a dot is never cached, and a name costs more than its refusal.
      const name = token.includes('.') ? nameOf(token) : '';
      const known = verifyKnown(name, client);
      if (known !== undefined) return known;
      let reading = inFlight.get(name);
      if (reading === undefined) {
        const started = verifyNew(token, name);
        if (!(started instanceof Promise)) return started;
        reading = started.finally(() => inFlight.delete(name));
        inFlight.set(name, reading);
      }
      return reading.then(read => (read.outcome === undefined ? judge(read, client, 'miss') : read));
    },
  };
}

/** `iss` may be unverified: nothing is made, kept or fetched for it. */
export interface IssuerFinder<Issuer> {
  get(iss: string): Issuer | undefined;
}

/** No `iss` fits two of them, which the validation of a configuration ensures. */
export function createIssuerFinder<Issuer extends { readonly rules: ClaimRules }>(
  issuers: readonly Issuer[],
  grammar: AccountGrammar,
): IssuerFinder<Issuer> {
  const byName = new Map(issuers.map(issuer => [issuer.rules.issuer, issuer]));
  const templates = issuers.flatMap(issuer => {
    const template = parseIssuerTemplate(issuer.rules.issuer);
    return template === undefined || template === 'misplaced' ? [] : [{ issuer, template }];
  });
  for (const { issuer } of templates) byName.delete(issuer.rules.issuer);
  return {
    get(iss) {
      const named = byName.get(iss);
      if (named !== undefined) return named;
      for (const { issuer, template } of templates) {
        const account = accountInIssuer(template, iss, grammar);
        if (account !== undefined) return { ...issuer, rules: { ...issuer.rules, issuer: iss, account } };
      }
      return undefined;
    },
  };
}

/** RFC 7515 section 4.1.9: media types ignore case, and `application/` is optional. A present but empty `typ` matches nothing. */
export function normalizeTokenType(typ: string): string {
  // ASCII only: toLowerCase() turns the Kelvin sign into k.
  const lower = typ.replace(/[A-Z]/g, letter => letter.toLowerCase());
  return lower.includes('/') ? lower : `application/${lower}`;
}

function refused(outcome: Refusal, kid: string | undefined, signed?: SignedIdentity): Verification {
  return { outcome, signed, kid, cache: 'miss' };
}

function invalid(detail: DetailOf<'token_invalid'>): Refusal {
  return refusal('token_invalid', detail);
}
