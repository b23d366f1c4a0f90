// The caller: the identity fields of a verified token. Their grammars make them safe as header values without escaping.

export type Account = string & { readonly brand: 'Account' };

export interface Principal {
  readonly uid: string;
  readonly app: string;
  readonly acc: Account;
  readonly role: string;
  /** The configured issuer, which equals the token's `iss` byte for byte. */
  readonly iss: string;
}

// Visible ASCII without space, comma, semicolon and double quote: no reader of the header can take the value for a list, a parameter or a
// quoted string (RFC 9110 section 5.6).
const fieldGrammar = /^[!#-+\--:<-~]{1,128}$/;
// The unreserved characters of RFC 3986 section 2.3: an account is compared with a path segment that is never decoded.
const accountGrammar = /^[A-Za-z0-9._~-]{1,128}$/;

/** The grammar of `uid`, `app` and `role`. */
export function isIdentityField(text: string): boolean {
  return fieldGrammar.test(text);
}

/** The grammar of `acc`. */
export function isAccount(text: string): text is Account {
  return accountGrammar.test(text) && text !== '.' && text !== '..';
}
