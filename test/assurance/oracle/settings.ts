// The configuration as an operator writes it (the contract), and the settings with its defaults.
import type { RevocationEntry } from './revocation.ts';
import type { Place } from './token-place.ts';

/** Text, or one of the two forms that read a list. */
export type ListSource =
  | string
  | { readonly keysOf: string; readonly having?: '{acc}' }
  | { readonly wordsOf: string; readonly by?: ',' };

/** Of several, the first that the token has. */
export type FieldSource = string | readonly string[];

export interface WrittenClaims {
  readonly aud?: string;
  readonly uid?: FieldSource;
  readonly app?: FieldSource;
  readonly acc?: string | { readonly keysOf: string } | { readonly wordsOf: string; readonly by?: ',' };
  readonly role?: ListSource;
  readonly scope?: string;
  readonly actor?: string;
}

export interface WrittenIssuer {
  /** Only `{acc}` in it matters here. */
  readonly jwksUrl?: string;
  readonly issuer: string;
  readonly audiences: readonly string[];
  readonly algorithms?: readonly string[];
  readonly tokenTypes?: readonly string[];
  readonly claims?: WrittenClaims;
  readonly accounts?: readonly string[];
  readonly allowIntegerClaims?: boolean;
}

/** A list of grants, or the same and what tokens call the role. */
export type WrittenRole =
  | readonly string[]
  | { readonly methods: readonly string[]; readonly names: readonly string[] };

/** By key, in the order of the configuration. */
export type PermissionTable = Readonly<
  Record<string, { readonly grants: readonly string[]; readonly names: readonly string[] }>
>;

export interface WrittenConfiguration {
  readonly issuers: readonly WrittenIssuer[];
  readonly token?: {
    readonly clockToleranceSeconds?: number;
    readonly maxLifetimeSeconds?: number;
    readonly maxBytes?: number;
    readonly forward?: boolean;
    readonly from?: readonly Place[];
    readonly origins?: readonly string[];
  };
  readonly routes: readonly {
    readonly path: string;
    readonly roles?: readonly string[];
    readonly scopes?: readonly string[];
    readonly characters?: 'strict' | 'rfc3986';
    readonly accountInPath?: false;
  }[];
  readonly public?: readonly { readonly path: string; readonly methods?: readonly string[] }[];
  readonly account?: {
    readonly headers?: readonly string[];
    readonly query?: readonly string[];
    readonly hosts?: readonly string[];
    readonly parameter?: string;
    readonly dots?: boolean;
    readonly case?: 'exact' | 'lower';
  };
  readonly roles: Readonly<Record<string, WrittenRole>>;
  readonly scopes?: Readonly<Record<string, readonly string[]>>;
  readonly protectedResource?: { readonly resource: string; readonly scopes?: readonly string[] };
  readonly apps?: readonly string[];
  readonly identityHeaders?: string;
  readonly forwardClaims?: Readonly<Record<string, string>>;
  readonly cache?: { readonly maxTokens: number };
  /** The content of the revocation list; undefined without one. */
  readonly revoked?: readonly RevocationEntry[];
  /** The list is one by URL that was never fetched. */
  readonly isListMissing?: boolean;
}

export interface IssuerSettings {
  readonly issuer: string;
  readonly audiences: readonly string[];
  readonly algorithms: readonly string[];
  readonly tokenTypes: readonly string[];
  readonly claims: WrittenClaims & Required<Omit<WrittenClaims, 'actor'>>;
  readonly accounts: readonly string[];
  /** Each name of `accounts` has a key set. */
  readonly hasOwnKeySets: boolean;
  readonly allowIntegerClaims: boolean;
}

export interface Settings {
  readonly issuers: readonly IssuerSettings[];
  readonly clockToleranceSeconds: number;
  readonly maxLifetimeSeconds: number;
  readonly maxBytes: number;
  readonly forward: boolean;
  readonly from: readonly Place[];
  readonly origins: readonly string[];
  readonly routes: WrittenConfiguration['routes'];
  /** The name of the path parameter that is the account. */
  readonly parameter: string;
  readonly dots: boolean;
  /** `account.case` is lower. */
  readonly lower: boolean;
  /** Undefined: any host is good. */
  readonly hosts: readonly string[] | undefined;
  readonly accountHeaders: readonly string[];
  readonly accountQuery: readonly string[];
  readonly roles: PermissionTable;
  /** Undefined: scopes are not looked at. */
  readonly scopes: PermissionTable | undefined;
  readonly apps: readonly string[];
  readonly resource: string | undefined;
  /** `protectedResource.scopes`. */
  readonly firstScopes: readonly string[];
  readonly identityPrefix: string;
  readonly forwardClaims: Readonly<Record<string, string>>;
  readonly revoked: readonly RevocationEntry[];
  readonly isListMissing: boolean;
}

export function settingsOf(written: WrittenConfiguration): Settings {
  return {
    issuers: written.issuers.map(each => ({
      issuer: each.issuer,
      audiences: each.audiences,
      algorithms: each.algorithms ?? ['RS256', 'ES256', 'EdDSA', 'Ed25519'],
      tokenTypes: each.tokenTypes ?? ['JWT', 'at+jwt'],
      claims: {
        aud: each.claims?.aud ?? 'aud',
        uid: each.claims?.uid ?? 'uid',
        app: each.claims?.app ?? 'app',
        acc: each.claims?.acc ?? 'acc',
        role: each.claims?.role ?? 'role',
        scope: each.claims?.scope ?? 'scope',
        ...(each.claims?.actor === undefined ? {} : { actor: each.claims.actor }),
      },
      accounts: each.accounts ?? ['*'],
      hasOwnKeySets: each.jwksUrl?.includes('{acc}') ?? false,
      allowIntegerClaims: each.allowIntegerClaims ?? false,
    })),
    clockToleranceSeconds: written.token?.clockToleranceSeconds ?? 30,
    maxLifetimeSeconds: written.token?.maxLifetimeSeconds ?? 86_400,
    maxBytes: written.token?.maxBytes ?? 8192,
    forward: written.token?.forward ?? false,
    from: written.token?.from ?? ['authorization'],
    origins: written.token?.origins ?? [],
    routes: written.routes,
    accountHeaders: (written.account?.headers ?? []).map(name => name.toLowerCase()),
    accountQuery: written.account?.query ?? [],
    parameter: written.account?.parameter ?? 'account_id',
    dots: written.account?.dots ?? false,
    lower: written.account?.case === 'lower',
    hosts: written.account?.hosts,
    roles: tableOf(written.roles),
    scopes: written.scopes && tableOf(written.scopes),
    resource: written.protectedResource?.resource,
    firstScopes: written.protectedResource?.scopes ?? [],
    apps: written.apps ?? ['*'],
    identityPrefix: written.identityHeaders ?? 'x-auth-',
    forwardClaims: written.forwardClaims ?? {},
    revoked: written.revoked ?? [],
    isListMissing: written.isListMissing ?? false,
  };
}

// "The key itself is no name then."
function tableOf(written: Readonly<Record<string, WrittenRole>>): PermissionTable {
  return Object.fromEntries(
    Object.entries(written).map(([key, role]) => [
      key,
      'methods' in role ? { grants: role.methods, names: role.names } : { grants: role, names: [key] },
    ]),
  );
}

/** What tokens call those of the table. */
export function claimedNames(table: PermissionTable): readonly string[] {
  return Object.values(table).flatMap(({ names }) => names);
}
