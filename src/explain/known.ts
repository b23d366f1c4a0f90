// What an explanation may speak of. Of a token that is not verified that is its length alone: what it claims is never repeated.
import type { Principal } from '../authz/principal.ts';
import type { Config, IssuerConfig } from '../config/schema.ts';
import type { KeyRingStatus } from '../keys/key-ring.ts';

/** What a decision line tells as well as a check that was just made. */
export interface Known {
  /** As the client sent it. */
  readonly method: string;
  /** The template that the path matched. */
  readonly route: string | undefined;
  /** Only of a verified token. */
  readonly principal: Principal | undefined;
  /** Only of a check that was just made. */
  readonly live: LiveFacts | undefined;
}

export interface LiveFacts {
  readonly config: Config;
  readonly request: ExplainedRequest;
  /** Wall time that the token was judged at, in seconds since the epoch. */
  readonly now: number;
  /** The keys that were asked for the token's key; undefined where it did not come to that. */
  readonly keys: KeyRingStatus | undefined;
  readonly tokenLength: number;
  /** Only of a token whose signature is good. */
  readonly times: VerifiedTimes | undefined;
  /** Where a fault of ours came from, without its message. */
  readonly fault: string | undefined;
}

export interface ExplainedRequest {
  readonly method: string;
  readonly target: string;
  /** Lower-case names, a line each, without Authorization. */
  readonly headers: readonly (readonly [name: string, value: string])[];
}

/** Seconds since the epoch; undefined where the token has none or what it has is not a time. */
export interface VerifiedTimes {
  readonly exp: number | undefined;
  readonly nbf: number | undefined;
  readonly iat: number | undefined;
}

/** The issuer of the token: the one whose keys were asked, or the only one there is. */
export function issuerIn({ config, keys }: LiveFacts): IssuerConfig | undefined {
  if (keys !== undefined) return config.issuers.find(({ issuer }) => issuer === keys.issuer);
  return config.issuers.length === 1 ? config.issuers[0] : undefined;
}
