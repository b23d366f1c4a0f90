// The facts that an explanation may print. Of an unverified token that is its length alone, never a claim.
import type { SignedIdentity } from '../../authz/principal.ts';
import type { Config, IssuerConfig } from '../../config/schema.ts';
import type { KeyRingStatus } from '../../keys/key-ring.ts';

export interface Known {
  /** As in the record of the check. */
  readonly found: string | undefined;
  /** As the client sent it. */
  readonly method: string;
  /** The template that the path matched. */
  readonly route: string | undefined;
  /** Only of a token whose signature is verified. */
  readonly principal: SignedIdentity | undefined;
  readonly config: Config;
  readonly request: ExplainedRequest;
  /** Wall time that the token was judged at, in seconds since the epoch. */
  readonly now: number;
  /** The key ring that was asked for the token's key; undefined if none was. */
  readonly keys: KeyRingStatus | undefined;
  readonly tokenLength: number;
  /** Only of a token with a valid signature. */
  readonly times: VerifiedTimes | undefined;
  /** The strings of its list of roles, for the addressed account; undefined if it has no list. */
  readonly roles: readonly string[] | undefined;
  /** Those of its scopes likewise; undefined without scopes in the configuration. */
  readonly scopes: readonly string[] | undefined;
  /** Names under claims of its issuer that lead to nothing in it. */
  readonly missingClaims: readonly string[];
  /** Name and place of an internal error, without its message. */
  readonly fault: string | undefined;
}

export interface ExplainedRequest {
  readonly method: string;
  readonly target: string;
  /** Lower-case names, a line each, without Authorization. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** That of the client, in PEM. */
  readonly certificate?: string | undefined;
}

/** Seconds since the epoch; undefined if the token has none or the value is not a number. */
interface VerifiedTimes {
  readonly exp: number | undefined;
  readonly nbf: number | undefined;
  readonly iat: number | undefined;
}

/** The issuer of the token: the one whose keys were asked, or the only one there is. */
export function issuerIn({ config, keys }: Known): IssuerConfig | undefined {
  if (keys !== undefined) return config.issuers.find(({ issuer }) => issuer === keys.issuer);
  return config.issuers.length === 1 ? config.issuers[0] : undefined;
}
