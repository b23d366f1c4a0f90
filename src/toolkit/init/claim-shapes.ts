// Where the tokens of each provider have what account-authz reads: the one table, for `init` and for docs/providers/README.md.
import type { ClaimSource } from '../../token/claim-source.ts';
import shapes from './claim-shapes.json' with { type: 'json' };

export type ClaimField = 'uid' | 'app' | 'acc' | 'role' | 'scope';

/** The sources of each field; the first is that of the provider's page. `acc` is absent where the account stands in `iss`. */
export interface ClaimShape extends Readonly<Partial<Record<ClaimField, readonly ClaimSource[]>>> {
  readonly provider: string;
  /** Below docs/providers/; none: a row for `init` alone. */
  readonly page?: string;
  /** What the token has, for the page. */
  readonly has: string;
  /** Decided by a test with tokens of the running server, and not of the documented shape alone. */
  readonly isReal?: boolean;
}

/** In the order in which `init` takes them. */
export const claimShapes = shapes as readonly unknown[] as readonly ClaimShape[];

/** Taken where a token has nothing better: they say less than another claim, or the same for every client. */
export const weakSources: ReadonlySet<string> = new Set(['permissions', 'scope', 'scp', 'aud', '/aud/0']);
