// Tokens that are bound to a client certificate (RFC 8705 section 3.1).
import { createHash } from 'node:crypto';
import { type Refusal, refusal } from '../authz/refusal.ts';
import type { RequestFacts } from '../authz/request-facts.ts';
import { isJsonObject } from '../json/strict-json.ts';

const thumbprintGrammar = /^[A-Za-z0-9_-]{43}$/;

/** The thumbprint in `cnf`; undefined without `cnf`. Only `x5t#S256` alone can be checked: any other key proves itself in other ways. */
export function parseBinding(cnf: unknown): string | undefined | Refusal {
  if (cnf === undefined) return undefined;
  const [[name, thumbprint] = [], ...others] = isJsonObject(cnf) ? Object.entries(cnf) : [];
  const isAlone = name === 'x5t#S256' && others.length === 0;
  if (isAlone && typeof thumbprint === 'string' && thumbprintGrammar.test(thumbprint)) return thumbprint;
  return refusal('token_invalid', 'cnf has not x5t#S256 alone');
}

/** The sender of a token, as far as a token can be bound to it. */
export type Client = Pick<RequestFacts, 'certificate'>;

export function checkBinding(thumbprint: string | undefined, client: Client): Refusal | undefined {
  if (thumbprint === undefined) return undefined;
  const shown = thumbprintOf(client.certificate);
  if (shown === undefined) return refusal('token_invalid', 'cnf names a certificate, and the check shows none');
  return shown === thumbprint
    ? undefined
    : refusal('token_invalid', 'cnf names another certificate than that of the client');
}

// Of a chain the first.
function thumbprintOf(certificate: string): string | undefined {
  const [, base64] =
    /^-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----/.exec(decoded(certificate)) ?? [];
  return base64 && createHash('sha256').update(Buffer.from(base64, 'base64')).digest('base64url');
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}
