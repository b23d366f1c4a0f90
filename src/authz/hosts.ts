// The hosts that requests may be for. The first label of a host may name the account, as in `acme.api.example.com`.

/** One entry of the configuration. Names are in lower case. */
export type HostEntry =
  | { readonly kind: 'literal'; readonly host: string }
  /** `parent` is what follows the label of the account, with its leading dot. */
  | { readonly kind: 'account'; readonly parent: string };

export interface HostEntryProblem {
  readonly kind: 'problem';
  /** The rest of a sentence about the entry. */
  readonly problem: string;
}

// RFC 1123 section 2.1.
const hostGrammar = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/;
const maxHostLength = 253;

/** `parameter` is the name by which the configuration writes the account. */
export function parseHostEntry(text: string, parameter: string): HostEntry | HostEntryProblem {
  const label = `:${parameter}`;
  const namesAccount = text.startsWith(`${label}.`);
  const host = (namesAccount ? text.slice(label.length + 1) : text).toLowerCase();
  if (host.length > maxHostLength || !hostGrammar.test(host)) {
    const rule = 'must be a host name without port and without a dot at the end';
    return { kind: 'problem', problem: `${rule}, whose first label may be ${label}` };
  }
  return namesAccount ? { kind: 'account', parent: `.${host}` } : { kind: 'literal', host };
}
