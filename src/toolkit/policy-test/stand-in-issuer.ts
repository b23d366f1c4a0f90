// Signs the claims of a case with a throw-away key that stands in for the issuer's keys: no secret and no network is needed.
import { KeyObject } from 'node:crypto';
import { CompactSign, type CryptoKey, generateKeyPair } from 'jose';
import { issuerPlaceholder, overlap, someIssuer } from '../../authz/issuer-template.ts';
import { toAccountGrammar } from '../../authz/places/places.ts';
import type { Config, IssuerConfig } from '../../config/schema.ts';
import { findTokenKey } from '../../keys/token-key.ts';
import type { IssuerKeys } from '../../token/verifier.ts';

interface StandInIssuers {
  /** By `iss`. */
  readonly keys: ReadonlyMap<string, IssuerKeys>;
  /** A compact JWS of the claims. `now` is in seconds since the epoch. */
  sign(claims: Readonly<Record<string, unknown>>, now: number): Promise<string>;
}

interface StandIn {
  readonly issuer: IssuerConfig;
  readonly alg: string;
  readonly privateKey: CryptoKey;
}

const kid = 'stand-in';
/** That of an account that has no key set. */
const noIssuer = 'none of issuers';
const lifetimeSeconds = 300;

export async function createStandInIssuers({ issuers, token, account }: Config): Promise<StandInIssuers> {
  const pairs = new Map<string, ReturnType<typeof generateKeyPair>>();
  const keys = new Map<string, IssuerKeys>();
  const standIns: StandIn[] = [];
  const grammar = toAccountGrammar(account);
  for (const issuer of issuers) {
    const [alg = 'RS256'] = issuer.algorithms;
    const pair = pairs.get(alg) ?? generateKeyPair(alg, { modulusLength: 2048 });
    pairs.set(alg, pair);
    const { publicKey, privateKey } = await pair;
    const cryptoKey = KeyObject.from(publicKey);
    const key = { kid, thumbprint: kid, cryptoKeyFor: (asked: string) => (asked === alg ? cryptoKey : undefined) };
    const set = { keys: new Map([[key, new Set<string>()]]), kids: new Set([kid]) };
    keys.set(issuer.issuer, { isInForce: one => one === key, find: header => findTokenKey(set, header) });
    standIns.push({ issuer, alg, privateKey });
  }

  return {
    keys,
    async sign(claims, now) {
      const [first] = standIns;
      if (first === undefined) return noIssuer;
      const acc = typeof claims.acc === 'string' ? claims.acc : undefined;
      // With {acc} in the issuer, the account of `iss` is that of `acc` in the case.
      const own = acc !== undefined && isOfOneAccount(first) ? standIns.find(each => isOfOneAccount(each, acc)) : first;
      const standIn =
        standIns.find(({ issuer }) => overlap(issuer.issuer, String(claims.iss), grammar)) ?? own ?? first;
      const { issuer, alg, privateKey } = standIn;
      const exp = Math.floor(now) + Math.min(lifetimeSeconds, token.maxLifetimeSeconds);
      // No token is issued after its end.
      const iat = Math.min(Math.floor(now), Number(claims.exp ?? exp));
      const aud = issuer.claims.aud.startsWith('/') ? 'aud' : issuer.claims.aud;
      const iss = own === undefined ? noIssuer : someIssuer(issuer.issuer, acc === undefined ? issuer.accounts : [acc]);
      const payload = { iss, [aud]: issuer.audiences[0], iat, exp, ...claims };
      const present = Object.fromEntries(Object.entries(payload).filter(([, value]) => value !== null));
      const [typ = ''] = issuer.tokenTypes;
      return new CompactSign(Buffer.from(JSON.stringify(present)))
        .setProtectedHeader({ alg, kid, ...(typ === '' ? {} : { typ }) })
        .sign(privateKey);
    },
  };
}

/** Whether it has a key set of its own, for any account or for this one: such an issuer is made of a template. */
function isOfOneAccount({ issuer: { issuer, claims, accounts } }: StandIn, account = accounts[0]): boolean {
  return claims.acc === undefined && !issuer.includes(issuerPlaceholder) && accounts[0] === account;
}
