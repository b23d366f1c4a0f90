// Whether a token is revoked, by the contract, "Revocation": a linear search of the list.
export interface RevocationEntry {
  readonly jti?: string;
  readonly sid?: string;
  readonly uid?: string;
  readonly acc?: string;
  readonly app?: string;
  readonly iss?: string;
  /** RFC 3339. */
  readonly issuedBefore?: string;
  /** RFC 3339. */
  readonly expires?: string;
}

/** What an entry is compared with. */
export interface RevocableToken {
  readonly uid: string;
  readonly app: string;
  readonly iss: string;
  /** The addressed account; undefined if the token has none that the request addresses. */
  readonly acc: string | undefined;
  /** Undefined if the claim is absent or neither a string nor a safe integer. */
  readonly jti: string | undefined;
  /** Undefined if the claim is no string. */
  readonly sid: string | undefined;
  readonly iat: number | undefined;
}

/** `now`: seconds since the epoch. */
export function isRevoked(entries: readonly RevocationEntry[], token: RevocableToken, now: number): boolean {
  return entries.some(entry => {
    // An expired entry is ignored.
    if (entry.expires !== undefined && now >= secondsOf(entry.expires)) return false;
    // Matches tokens whose iat is earlier or absent.
    if (entry.issuedBefore !== undefined && token.iat !== undefined && token.iat >= secondsOf(entry.issuedBefore))
      return false;
    // All members of the entry must be equal.
    if (entry.jti !== undefined && entry.jti !== token.jti) return false;
    if (entry.sid !== undefined && entry.sid !== token.sid) return false;
    if (entry.uid !== undefined && entry.uid !== token.uid) return false;
    if (entry.acc !== undefined && entry.acc !== token.acc) return false;
    if (entry.app !== undefined && entry.app !== token.app) return false;
    return entry.iss === undefined || entry.iss === token.iss;
  });
}

function secondsOf(time: string): number {
  return Date.parse(time) / 1000;
}
