// Who calls. `Identity` is what a verified token says, whatever a request addresses; `Principal` is the caller of one request, which
// addresses one account. The grammars of the fields make them safe as header values without escaping.
import type { IssuerAccounts } from './issuer-accounts.ts';
import type { Refusal } from './refusal.ts';

export type Account = string & { readonly brand: 'Account' };

/** What a token has of one permission table: the names that the table has, in its order. */
export type Claimed = readonly string[];

/** Of a set, so that the cache can keep accounts in less memory than a set takes. */
export type AccountSet = Iterable<Account> & Pick<ReadonlySet<Account>, 'has' | 'size'>;

/** What a token says for each account of its own. An account that is not a key has nothing. */
export interface ClaimedByAccount {
  readonly kind: 'byAccount';
  /** A refusal where the token is wrong for this account. */
  readonly claimed: Iterable<readonly [Account, Claimed | Refusal]> &
    Pick<ReadonlyMap<Account, Claimed | Refusal>, 'get'>;
}

/** What a verified token says. It is cached, so it never depends on a request. */
export interface Identity {
  readonly uid: string;
  readonly app: string;
  /** The one account that the issuer may speak for, several of them, or why none is left. */
  readonly accounts: Account | AccountSet | Refusal;
  /** The accounts that the issuer may speak for, whatever the token says. */
  readonly issuerAccounts: IssuerAccounts;
  readonly role: Claimed | ClaimedByAccount;
  /** Empty if the configuration has no scopes. */
  readonly scope: Claimed | ClaimedByAccount;
  /** What the token says where the configuration has none of its scopes; for the log only. */
  readonly otherScopes: string | undefined;
  /** Who acts for the user. Grants nothing. */
  readonly actor: string | undefined;
  /** For the upstream alone: the text of each of `forwardClaims`, in their order; undefined where the token has none that a header may have. */
  readonly forwarded: readonly (string | undefined)[];
  /** The configured issuer, which equals the token's `iss` byte for byte. */
  readonly iss: string;
  /** Undefined if it is absent, of another type, or longer than a revocation list can name. */
  readonly jti: string | undefined;
  /** The session (OpenID Connect Core). Undefined likewise. */
  readonly sid: string | undefined;
}

/** The caller of one request. The log has every field, in the order of `toPrincipal`. */
export interface Principal extends Pick<Identity, 'uid' | 'app' | 'actor' | 'iss' | 'jti' | 'sid'> {
  /** The addressed account; where the request addresses none of the token, the account of a token that has exactly one. */
  readonly acc: Account | undefined;
  /** The one role that decides; undefined without an addressed account, and if the token has none that the configuration names. */
  readonly role: string | undefined;
  /** The one scope that decides; undefined likewise, and without scopes in the configuration. */
  readonly scope: string | undefined;
}

export interface AllowedPrincipal extends Principal {
  readonly acc: Account;
  readonly role: string;
}

/**
 * The key of the metadata of an allow, beside `decision`, that no other authorizer writes by habit: all ext_authz filters of an Envoy
 * write one namespace, and many write a `decision` or a `uid`. The guard asks for it.
 */
export const allowKey = 'account-authz';

/** Who learns the fields of a caller: the log, which has all, or the upstream (as a header) and Envoy (as metadata) too. */
const learnedBy = {
  uid: 'upstream',
  app: 'upstream',
  acc: 'upstream',
  role: 'upstream',
  scope: 'log',
  iss: 'upstream',
  actor: 'upstream',
  jti: 'log',
  sid: 'log',
} as const satisfies Record<keyof Principal, 'log' | 'upstream'>;

type IdentityField = keyof typeof learnedBy;
type UpstreamField = { [F in IdentityField]: (typeof learnedBy)[F] extends 'upstream' ? F : never }[IdentityField];

/** In the order of an answer. */
export const upstreamFields = (Object.keys(learnedBy) as readonly IdentityField[]).filter(
  (field): field is UpstreamField => learnedBy[field] === 'upstream',
);

/** What the token of a refused request says so far: its signature is verified, its claims may be wrong. For the log only. */
export type SignedIdentity = { readonly [Field in keyof Principal]?: Principal[Field] | undefined };

// Visible ASCII without space, comma, semicolon and double quote: no reader of the header can take the value for a list, a parameter or a
// quoted string (RFC 9110 section 5.6).
const fieldGrammar = /^[!#-+\--:<-~]{1,128}$/;
// The unreserved characters of RFC 3986 section 2.3: an account is compared with a path segment that is never decoded. Many servers cut a
// segment at its last dot and take the rest for a format (Django REST framework, Rails), so dots need a switch.
const accountGrammar = /^(?!\.{1,2}$)[A-Za-z0-9._~-]{1,128}$/;

export const issuerGrammar = /^[!-~]{1,1024}$/;
export const issuerRule = 'must be 1 to 1024 visible ASCII characters';

/** `account.dots` and `account.case` of the configuration. */
export interface AccountGrammar {
  readonly dots: boolean;
  /** Accounts are lower case, and a request may name them in upper case too. */
  readonly lower: boolean;
}

/** The grammar of every field that is read from a token and no account. */
export function isIdentityField(text: string): boolean {
  return fieldGrammar.test(text);
}

/** Why a text is no account: it is one only with `account.dots`, or only without `account.case: lower`, or never. */
export function accountProblem(text: string, { dots, lower }: AccountGrammar): 'dots' | 'case' | 'grammar' | undefined {
  if (!accountGrammar.test(text)) return 'grammar';
  if (!dots && text.includes('.')) return 'dots';
  return lower && /[A-Z]/.test(text) ? 'case' : undefined;
}

export function isAccount(text: string, grammar: AccountGrammar): text is Account {
  return accountProblem(text, grammar) === undefined;
}

/** The name of an account in a request, in the case of accounts. ASCII letters alone: a Kelvin sign is no k. */
export function foldAccountCase(text: string, { lower }: AccountGrammar): string {
  return lower ? text.replace(/[A-Z]+/g, letters => letters.toLowerCase()) : text;
}

/** The caller of a request that addresses an account of the token. */
export function toPrincipal(identity: Identity, acc: Account | undefined, role?: string, scope?: string): Principal {
  const { uid, app, iss, actor, jti, sid } = identity;
  return { uid, app, acc, role, scope, actor, iss, jti, sid };
}

/** The caller of a request that addresses no account of the token, or was refused before it was known to. */
export function toUnaddressed(identity: Identity): Principal {
  return toPrincipal(identity, typeof identity.accounts === 'string' ? identity.accounts : undefined);
}
