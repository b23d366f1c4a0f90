// The configuration as an operator writes it (the contract), and the settings with its defaults.
import type { RevocationEntry } from './revocation.ts';

export interface WrittenIssuer {
  readonly issuer: string;
  readonly audiences: readonly string[];
  readonly algorithms?: readonly string[];
  readonly tokenTypes?: readonly string[];
  readonly claims?: Readonly<Partial<Record<'uid' | 'app' | 'acc' | 'role', string>>>;
  readonly allowIntegerClaims?: boolean;
}

export interface WrittenConfiguration {
  readonly issuers: readonly WrittenIssuer[];
  readonly token?: {
    readonly clockToleranceSeconds?: number;
    readonly maxLifetimeSeconds?: number;
    readonly maxBytes?: number;
    readonly forward?: boolean;
  };
  readonly routes: readonly {
    readonly path: string;
    readonly roles?: readonly string[];
    readonly characters?: 'strict' | 'rfc3986';
    readonly accountInPath?: false;
  }[];
  readonly account?: { readonly headers?: readonly string[]; readonly query?: readonly string[] };
  readonly roles: Readonly<Record<string, readonly string[]>>;
  readonly apps?: readonly string[];
  readonly identityHeaders?: string;
  readonly cache?: { readonly maxTokens: number };
  /** The content of the revocation list; undefined without one. */
  readonly revoked?: readonly RevocationEntry[];
}

export interface IssuerSettings {
  readonly issuer: string;
  readonly audiences: readonly string[];
  readonly algorithms: readonly string[];
  readonly tokenTypes: readonly string[];
  readonly claims: { readonly uid: string; readonly app: string; readonly acc: string; readonly role: string };
  readonly allowIntegerClaims: boolean;
}

export interface Settings {
  readonly issuers: readonly IssuerSettings[];
  readonly clockToleranceSeconds: number;
  readonly maxLifetimeSeconds: number;
  readonly maxBytes: number;
  readonly forward: boolean;
  readonly routes: readonly { readonly path: string; readonly roles?: readonly string[] }[];
  readonly accountHeaders: readonly string[];
  readonly accountQuery: readonly string[];
  readonly roles: Readonly<Record<string, readonly string[]>>;
  readonly apps: readonly string[];
  readonly identityPrefix: string;
  readonly revoked: readonly RevocationEntry[];
}

export function settingsOf(written: WrittenConfiguration): Settings {
  return {
    issuers: written.issuers.map(each => ({
      issuer: each.issuer,
      audiences: each.audiences,
      algorithms: each.algorithms ?? ['RS256', 'ES256', 'EdDSA'],
      tokenTypes: each.tokenTypes ?? ['JWT', 'at+jwt'],
      claims: {
        uid: each.claims?.uid ?? 'uid',
        app: each.claims?.app ?? 'app',
        acc: each.claims?.acc ?? 'acc',
        role: each.claims?.role ?? 'role',
      },
      allowIntegerClaims: each.allowIntegerClaims ?? false,
    })),
    clockToleranceSeconds: written.token?.clockToleranceSeconds ?? 30,
    maxLifetimeSeconds: written.token?.maxLifetimeSeconds ?? 86_400,
    maxBytes: written.token?.maxBytes ?? 8192,
    forward: written.token?.forward ?? false,
    routes: written.routes,
    accountHeaders: (written.account?.headers ?? []).map(name => name.toLowerCase()),
    accountQuery: written.account?.query ?? [],
    roles: written.roles,
    apps: written.apps ?? ['*'],
    identityPrefix: written.identityHeaders ?? 'x-auth-',
    revoked: written.revoked ?? [],
  };
}
