// The schema of an issuer: where its keys come from and which of its tokens are accepted.
import * as z from 'zod';
import { issuerPlaceholder } from '../authz/issuer-template.ts';
import { issuerGrammar, issuerRule } from '../authz/principal.ts';
import { isJsonObject, memberOf } from '../json/strict-json.ts';
import { isSupportedAlgorithm } from '../keys/jwks.ts';
import { keyUrlProblem } from '../text/url.ts';
import type { ClaimSource } from '../token/claim-source.ts';
import { normalizeTokenType } from '../token/verifier.ts';
import { claims, defaultAccountClaim } from './claims-schema.ts';
import { requireSoundTemplate } from './issuer-templates.ts';
import {
  evenIfInvalid,
  fileName,
  keyUrl,
  list,
  mapping,
  notControl,
  patternedText,
  report,
  secureKeyUrlPattern,
  text,
} from './value-schemas.ts';

// Asymmetric algorithms only: no HS*, no none.
const algorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
  'ML-DSA-44',
  'ML-DSA-65',
  'ML-DSA-87',
];

export const defaultAlgorithms: readonly string[] = ['RS256', 'ES256', 'EdDSA', 'Ed25519'];

const keySources = ['jwksUrl', 'discoveryUrl', 'jwksFile'] as const;
export const clientCertificateKeys = ['clientCertFile', 'clientKeyFile'] as const;

// With dots whatever account.dots says: such an entry covers no account then.
const accountsGrammar = /^!?(?:(?!\.{1,2}$)[A-Za-z0-9._~-]{1,128}|[A-Za-z0-9._~-]{0,128}\*)$/;
const accountsRule =
  'must be an account of A-Z a-z 0-9 . _ ~ -, or the start of one with "*" at its end; "!" before it excepts those accounts';

const audiencePattern = `^(?!\\s)(?!.*\\s$)${notControl}*$`;

const secureKeyUrl = { pattern: secureKeyUrlPattern };

export const issuer = mapping({
  issuer: patternedText(issuerGrammar, issuerRule).meta({
    description:
      'The issuer as it stands in the claim iss, compared byte for byte. {acc}, as a whole segment of the path or the whole first label of the host, stands for the account: then each account has an issuer of its own. With {acc} in the URL of the keys too, accounts lists the names, and each has keys of its own.',
    examples: ['https://auth.example.com', 'https://auth.example.com/realms/{acc}'],
  }),
  audiences: list(text(audienceProblem).meta({ minLength: 1, maxLength: 1024, pattern: audiencePattern }), {
    noun: 'audience',
  }).meta({
    description: 'Accepted audiences: the claim aud must contain at least one of them.',
  }),
  jwksUrl: keyUrl().exactOptional().meta({
    description:
      'URL of the key set: https, or http to loopback, or to any host with allowHttp. Exactly one of jwksUrl, discoveryUrl and jwksFile.',
  }),
  discoveryUrl: keyUrl().exactOptional().meta({
    description:
      'URL of the metadata document that names the key set (OpenID Connect Discovery, RFC 8414): https, or http to loopback, or to any host with allowHttp. Exactly one of jwksUrl, discoveryUrl and jwksFile.',
  }),
  jwksFile: fileName().exactOptional().meta({
    description: 'File that holds the key set. Exactly one of jwksUrl, discoveryUrl and jwksFile.',
  }),
  algorithms: list(text(algorithmProblem).meta({ enum: algorithms }), { noun: 'algorithm' })
    .default([...defaultAlgorithms])
    .meta({ description: 'Accepted signature algorithms. ML-DSA needs Node 24.7 or later.' }),
  tokenTypes: list(
    patternedText(
      /^(?:[\w!#$%&'*+.^`|~-]{1,127}(?:\/[\w!#$%&'*+.^`|~-]{1,127})?)?$/,
      'must be a media type such as JWT or at+jwt, or "" for an absent typ',
    ),
    { noun: 'token type', sameBy: item => (typeof item === 'string' ? normalizeTokenType(item) : item) },
  )
    .default(['JWT', 'at+jwt'])
    .meta({
      description:
        'Accepted values of the header member typ, compared as RFC 7515 section 4.1.9 says. "" accepts a token without typ.',
    }),
  claims: claims.prefault({}).meta({
    description:
      'Where each field is read from. A name that starts with / is a JSON Pointer (RFC 6901) into the payload, such as /realm_access/roles; any other is the name of a top-level claim, byte for byte.',
  }),
  accounts: list(patternedText(accountsGrammar, accountsRule), { noun: 'account' })
    .superRefine(requireOneCovered)
    .default(['*'])
    .meta({
      description:
        'The accounts that this issuer may speak for: names, or a prefix with * at its end, compared byte for byte; with ! before it, all but these. Other accounts of a token are ignored.',
      examples: [['*'], ['partner-*', 'acme'], ['*', '!partner-*']],
      contains: { pattern: '^[^!]' },
    }),
  allowIntegerClaims: z.boolean().default(false).meta({
    description:
      'Whether claims, and members of their lists, may also be integers from 0 to 2^53 - 1, read as their decimal digits.',
  }),
  caFile: fileName().exactOptional().meta({
    description: 'CA certificates: a PEM file. They are trusted in addition when the keys of this issuer are fetched.',
  }),
  clientCertFile: fileName().exactOptional().meta({
    description:
      'Client certificate, then its intermediate certificates if it has any: a PEM file. It is shown to https servers that ask for one when the keys of this issuer are fetched. Needs clientKeyFile. Changed files are picked up.',
  }),
  clientKeyFile: fileName().exactOptional().meta({
    description: 'Private key of clientCertFile, not encrypted: a PEM file. Needs clientCertFile.',
  }),
  bearerTokenFile: fileName().exactOptional().meta({
    description:
      'A token that is sent as Authorization: Bearer when the keys of this issuer are fetched: to the configured URL and others of its scheme, host and port, never elsewhere. Read for each fetch. The file need not exist yet.',
  }),
  allowHttp: z.boolean().default(false).meta({
    description:
      'Whether key URLs may be http to any host, for a mesh that encrypts: whoever is on the way can replace the keys.',
  }),
})
  .superRefine(requireOneKeySource, evenIfInvalid)
  .superRefine(requireWholeClientCertificate, evenIfInvalid)
  .superRefine(refuseConnectionOfFile, evenIfInvalid)
  .superRefine(requireAllowedHttp, evenIfInvalid)
  .superRefine(requireSoundTemplate, evenIfInvalid)
  .meta({
    description: 'An issuer of tokens.',
    oneOf: keySources.map(source => ({ required: [source] })),
    dependentRequired: { clientCertFile: ['clientKeyFile'], clientKeyFile: ['clientCertFile'] },
    if: { properties: { allowHttp: { const: true } }, required: ['allowHttp'] },
    else: { properties: { jwksUrl: secureKeyUrl, discoveryUrl: secureKeyUrl } },
  })
  .transform(issuer => {
    const { aud, uid, app, acc, ...others } = issuer.claims;
    const isOfOneAccount = issuer.issuer.includes(issuerPlaceholder) && acc === undefined;
    const source: { acc?: ClaimSource } = isOfOneAccount ? {} : { acc: acc ?? defaultAccountClaim };
    return { ...issuer, claims: { aud, uid, app, ...source, ...others } };
  });

function algorithmProblem(alg: string): string | undefined {
  if (/^HS\d+$/.test(alg))
    return `must not be ${alg}, a shared secret, with which whoever verifies a token can make one: let the issuer sign with RS256 or ES256`;
  if (!algorithms.includes(alg)) return `must be one of ${algorithms.join(', ')}`;
  return isSupportedAlgorithm(alg)
    ? undefined
    : `must not be ${alg} on this Node ${process.versions.node}: it needs 24.7 or later`;
}

function requireOneCovered(accounts: readonly string[], context: z.RefinementCtx): void {
  if (accounts.length > 0 && accounts.every(entry => entry.startsWith('!')))
    report(context, 'must name the accounts that it may speak for, such as "*", beside those that it may not');
}

// YAML easily adds a line end or a space, with which no token would match.
function audienceProblem(audience: string): string | undefined {
  const isPossible = /^[^\p{Cc}]{1,1024}$/u.test(audience) && audience.trim() === audience;
  return isPossible
    ? undefined
    : 'must be 1 to 1024 characters without control characters and without white space at the start or end';
}

function requireOneKeySource(issuer: unknown, context: z.RefinementCtx): void {
  if (!isJsonObject(issuer)) return;
  const named = keySources.filter(source => Object.hasOwn(issuer, source));
  if (named.length === 1) return;
  const found = named.length === 0 ? 'none' : named.join(' and ');
  report(context, `must set exactly one of ${keySources.join(', ')} (it sets ${found})`);
}

export function requireWholeClientCertificate(issuer: unknown, context: z.RefinementCtx): void {
  const named = clientCertificateKeys.filter(key => memberOf(issuer, key) !== undefined);
  const [missing] = clientCertificateKeys.filter(key => !named.includes(key));
  for (const key of named) if (missing !== undefined) report(context, `must be set together with ${missing}`, [key]);
}

function refuseConnectionOfFile(issuer: unknown, context: z.RefinementCtx): void {
  if (memberOf(issuer, 'jwksFile') === undefined) return;
  for (const key of [...clientCertificateKeys, 'bearerTokenFile']) {
    if (memberOf(issuer, key) !== undefined)
      report(context, 'must not be set together with jwksFile: a file is read without a connection', [key]);
  }
}

/** Of an issuer, and of a revocation list by URL. */
export function requireAllowedHttp(issuer: unknown, context: z.RefinementCtx): void {
  if (memberOf(issuer, 'allowHttp') === true) return;
  for (const key of ['jwksUrl', 'discoveryUrl', 'url']) {
    const url = memberOf(issuer, key);
    if (typeof url === 'string' && keyUrlProblem(url, true) === undefined) report(context, keyUrlProblem(url), [key]);
  }
}
