// The schema of `revocation`: the list of a file, or one by URL with the settings of its fetch.
import * as z from 'zod';
import { issuerPlaceholder } from '../authz/issuer-template.ts';
import { isJsonObject, memberOf } from '../json/strict-json.ts';
import { requireAllowedHttp, requireWholeClientCertificate } from './issuer-schema.ts';
import {
  evenIfInvalid,
  fileName,
  integer,
  keyUrl,
  mapping,
  report,
  requireAtLeast,
  secureKeyUrlPattern,
} from './value-schemas.ts';

/** Of a list by URL: one of a file has none of these settings. */
const defaults = { refreshSeconds: 5, maxAgeSeconds: 3600, allowHttp: false };

export const revocation = mapping({
  file: fileName().exactOptional().meta({
    description:
      'The revocation list: a JSON object a line (JSON Lines), at most 100,000 of them and 1,024 bytes each. A changed file takes effect within 5 seconds. Exactly one of file and url.',
  }),
  url: keyUrl().exactOptional().meta({
    description:
      'URL of the same list: https, or http to loopback, or to any host with allowHttp. At most 32 MiB. Exactly one of file and url.',
  }),
  refreshSeconds: integer(1, 3600).exactOptional().meta({
    default: defaults.refreshSeconds,
    description: 'Time between two fetches of url, in seconds; jitter only shortens it.',
  }),
  maxAgeSeconds: integer(1).exactOptional().meta({
    default: defaults.maxAgeSeconds,
    description:
      'A list by url that was not confirmed for this long cannot decide (503), in seconds. At least refreshSeconds.',
  }),
  caFile: fileName()
    .exactOptional()
    .meta({ description: 'CA certificates: a PEM file. They are trusted in addition when url is fetched.' }),
  clientCertFile: fileName().exactOptional().meta({
    description:
      'Client certificate for url, then its intermediate certificates if it has any: a PEM file. Needs clientKeyFile.',
  }),
  clientKeyFile: fileName().exactOptional().meta({
    description: 'Private key of clientCertFile, not encrypted: a PEM file. Needs clientCertFile.',
  }),
  bearerTokenFile: fileName().exactOptional().meta({
    description:
      'A token that is sent as Authorization: Bearer to url. Read for each fetch. The file need not exist yet.',
  }),
  allowHttp: z.boolean().exactOptional().meta({
    default: defaults.allowHttp,
    description: 'Whether url may be http to any host, for a mesh that encrypts.',
  }),
})
  .superRefine(requireOneList, evenIfInvalid)
  .superRefine(requireWholeClientCertificate, evenIfInvalid)
  .superRefine(requireAllowedHttp, evenIfInvalid)
  .superRefine((list: unknown, context) => {
    if (String(memberOf(list, 'url')).includes(issuerPlaceholder))
      report(context, `must not have ${issuerPlaceholder}: one list is for all accounts`, ['url']);
  }, evenIfInvalid)
  .superRefine(
    (list: unknown, context) =>
      requireAtLeast({ ...defaults, ...(isJsonObject(list) && list) }, 'maxAgeSeconds', 'refreshSeconds', context),
    evenIfInvalid,
  )
  .meta({
    oneOf: [
      { required: ['file'], maxProperties: 1 },
      { required: ['url'], properties: { file: false } },
    ],
    dependentRequired: { clientCertFile: ['clientKeyFile'], clientKeyFile: ['clientCertFile'] },
    if: { properties: { allowHttp: { const: true } }, required: ['allowHttp'] },
    else: { properties: { url: { pattern: secureKeyUrlPattern } } },
  })
  .transform(({ file = '', url, ...settings }) =>
    url === undefined ? { file, url } : { url, ...defaults, ...settings },
  );

function requireOneList(list: unknown, context: z.RefinementCtx): void {
  if (!isJsonObject(list)) return;
  const named = ['file', 'url'].filter(source => Object.hasOwn(list, source));
  if (named.length !== 1)
    report(context, `must set exactly one of file, url (it sets ${named.join(' and ') || 'none'})`);
  if (!named.includes('file')) return;
  for (const key of Object.keys(list))
    if (key !== 'file' && key !== 'url')
      report(context, 'must not be set together with file: a file is read without a connection', [key]);
}
