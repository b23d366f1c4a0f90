// The caller: the identity fields of a verified token, and its role in a request. Their grammars make them safe as header values without escaping.

export type Account = string & { readonly brand: 'Account' };

/** Who a verified token names. */
export interface Identity {
  readonly uid: string;
  readonly app: string;
  readonly acc: Account;
  /** One role, or the members of a list of roles that are within the grammar. */
  readonly role: string | readonly string[];
  /** The configured issuer, which equals the token's `iss` byte for byte. */
  readonly iss: string;
}

/** The caller of one request. */
export interface Principal extends Omit<Identity, 'role'> {
  /** The one role that decides; undefined if the token has a list of roles and the configuration names none of them. */
  readonly role: string | undefined;
}

export interface AllowedPrincipal extends Principal {
  readonly role: string;
}

// Visible ASCII without space, comma, semicolon and double quote: no reader of the header can take the value for a list, a parameter or a
// quoted string (RFC 9110 section 5.6).
const fieldGrammar = /^[!#-+\--:<-~]{1,128}$/;
// The unreserved characters of RFC 3986 section 2.3: an account is compared with a path segment that is never decoded. Many servers cut a
// segment at its last dot and take the rest for a format (Django REST framework, Rails), so dots need a switch.
const accountGrammar = /^[A-Za-z0-9_~-]{1,128}$/;
const accountGrammarWithDots = /^(?!\.{1,2}$)[A-Za-z0-9._~-]{1,128}$/;

/** The grammar of `uid`, `app` and `role`. */
export function isIdentityField(text: string): boolean {
  return fieldGrammar.test(text);
}

/** The grammar of accounts. `dots` is the setting account.dots. */
export function isAccount(text: string, dots: boolean): text is Account {
  return (dots ? accountGrammarWithDots : accountGrammar).test(text);
}
