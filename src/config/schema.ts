// The zod schema of the configuration: the one source of its types, rules, defaults and JSON Schema.
// Every rule runs even if others fail, so that all problems are reported at once.
import { isAbsolute } from 'node:path';
import * as z from 'zod';
import type { PermissionEntry, PermissionTable } from '../authz/permission.ts';
import { upstreamFields } from '../authz/principal.ts';
import { forwardedNameProblem, identityPrefixProblem } from '../headers/headers.ts';
import { isJsonObject, itemsOf, memberOf } from '../json/strict-json.ts';
import { isLoopback, isSameListener, parseListenAddress } from '../text/listen-address.ts';
import { issuer } from './issuer-schema.ts';
import { refuseOverlappingIssuers } from './issuer-templates.ts';
import {
  account,
  apps,
  forwardClaims,
  protectedResource,
  publicRoutes,
  requireResourceAmongHosts,
  roles,
  routes,
  scopes,
} from './policy-schema.ts';
import { revocation } from './revocation-schema.ts';
import { requireSoundRoutes } from './route-rules.ts';
import { token } from './token-schema.ts';
import {
  evenIfInvalid,
  fileName,
  integer,
  list,
  mapping,
  maxEntries,
  report,
  requireAtLeast,
  text,
} from './value-schemas.ts';

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;

// A timer of Node fires at once above 2,147,483 s; the rest is room for jitter.
const maxTimerSeconds = 2_000_000;

// The grammar of src/text/listen-address.ts for the JSON Schema.
const hostAndPortPattern =
  '(?:\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9][A-Za-z0-9-]*(?:\\.[A-Za-z0-9][A-Za-z0-9-]*)*):(?:0|[1-9][0-9]{0,4})';

const tls = mapping({
  certFile: fileName().meta({
    description: 'Certificate of the service, then its intermediate certificates if it has any: a PEM file.',
  }),
  keyFile: fileName().meta({ description: 'Private key of the certificate, not encrypted: a PEM file.' }),
  clientCaFile: fileName().exactOptional().meta({
    description:
      'CA certificates: a PEM file. With it the caller must present a certificate that one of them vouches for.',
  }),
});

const keys = mapping({
  refreshSeconds: integer(1, maxTimerSeconds).default(300).meta({
    description: 'Time between two background refreshes, in seconds, with jitter. At least cooldownSeconds.',
  }),
  maxAgeSeconds: integer(1).default(3600).meta({
    description: 'Keys that were not confirmed for this long are not used (503), in seconds. At least refreshSeconds.',
  }),
  cooldownSeconds: integer(1, maxTimerSeconds).default(5).meta({
    description: 'Shortest time between two fetches for one issuer, whatever their result, in seconds.',
  }),
  timeoutSeconds: integer(1, maxTimerSeconds).default(3).meta({
    description: 'Time limit of a fetch, its whole body included, in seconds.',
  }),
  cacheDirectory: text(cacheDirectoryProblem).exactOptional().meta({
    pattern: '^/',
    description:
      'Folder for the last good key sets, for a start while an issuer is down: an absolute path. They are not used beyond maxAgeSeconds. Name a folder below the mount of a volume: it is created with mode 0700. A folder or file that others can write is not used; group-writable is accepted for a group of the process (fsGroup).',
  }),
}).superRefine(requireOrderOfTimes, evenIfInvalid);

const cache = mapping({
  maxTokens: integer(0, 200_000).default(10_000).meta({
    description: 'How many verified tokens are remembered. 0 turns the cache off.',
  }),
});

const log = mapping({
  level: z.enum(logLevels).default('info').meta({ description: 'The least severe lines that are written.' }),
  allowed: z.boolean().default(true).meta({ description: 'Whether an allowed request gets its line too.' }),
});

const shutdown = mapping({
  graceSeconds: integer(0, 300).default(10).meta({
    description: 'Longest time that a stop waits for calls and connections, in seconds.',
  }),
});

export const configSchema = mapping({
  listen: text(address => problemOf(parseListenAddress(address)))
    .default('127.0.0.1:9191')
    .meta({
      description:
        'Where the gRPC service listens: host:port, [v6]:port or unix:/absolute/path (107 bytes at most). Port 0 is any free port. A change needs a restart.',
      pattern: `^(?:unix:(?://)?/[^/](?:.*[^/])?|${hostAndPortPattern})$`,
      examples: ['127.0.0.1:9191', 'unix:/run/account-authz/authz.sock'],
    }),
  listenInsecure: z.boolean().default(false).meta({
    description: 'Whether listen may be neither loopback nor a Unix socket although there is no tls.',
  }),
  tls: tls.exactOptional().meta({
    description:
      'TLS 1.2 or newer for listen, on a port and on a Unix socket alike. Changed files are picked up, a change of their names needs a restart.',
  }),
  admin: text(adminAddressProblem)
    .default('0.0.0.0:9192')
    .meta({
      pattern: `^${hostAndPortPattern}$`,
      description:
        'Where /livez, /readyz, /metrics and, for people, the page / are served over HTTP: host:port or [v6]:port. Port 0 is any free port. A change needs a restart.',
    }),
  issuers: list(issuer, {
    noun: 'issuer',
    sameBy: item => memberOf(item, 'issuer'),
    repeatedAt: 'issuer',
    max: maxEntries.issuers,
  }).meta({
    description: 'Whose tokens are accepted. Issuers never share keys.',
  }),
  token: token
    .prefault({})
    .meta({ description: 'Bounds of a token and where a request may carry it, the same for all issuers.' }),
  keys: keys.prefault({}).meta({ description: 'How the keys of each issuer are kept up to date.' }),
  routes,
  public: publicRoutes.exactOptional().meta({
    description:
      'Paths that Envoy serves without a check, for render and check-config. account-authz itself answers them 404.',
  }),
  account: account.prefault({}).meta({ description: 'Where a request names its account, besides its path.' }),
  roles,
  scopes: scopes.exactOptional(),
  apps,
  protectedResource: protectedResource.exactOptional().meta({
    description:
      'This API as an OAuth 2.0 protected resource (RFC 9728), so that clients find the authorization server.',
  }),
  revocation: revocation.exactOptional().meta({
    description: 'Tokens, users, accounts and applications that are refused although their tokens are valid.',
  }),
  identityHeaders: text(identityPrefixProblem)
    .default('x-auth-')
    .meta({
      description: `Prefix of the identity headers ${upstreamFields.join(', ')} for the upstream; nothing that a client sends under it survives. 4 to 64 characters, at most 5 hyphens, one of them at the end.`,
      pattern: '^[a-z0-9][a-z0-9-]*-$',
      minLength: 4,
      maxLength: 64,
    }),
  forwardClaims: forwardClaims.exactOptional(),
  cache: cache.prefault({}).meta({ description: 'The cache of verified tokens.' }),
  log: log.prefault({}).meta({ description: 'The log on standard output.' }),
  shutdown: shutdown.prefault({}).meta({ description: 'How the service stops.' }),
})
  .superRefine(requireSafeListeners, evenIfInvalid)
  .superRefine(requireOwnHeaders, evenIfInvalid)
  .superRefine(requireSoundRoutes, evenIfInvalid)
  .superRefine(requireResourceAmongHosts, evenIfInvalid)
  .superRefine(refuseOverlappingIssuers, evenIfInvalid)
  .meta({ title: 'account-authz configuration', description: 'The configuration file of account-authz.' })
  .transform(({ scopes, ...config }) => ({
    ...config,
    roles: toTable(config.roles),
    ...(scopes && { scopes: toTable(scopes) }),
  }));

// An object has names that are whole numbers first; load.ts puts the names into the order of the file.
function toTable(entries: Readonly<Record<string, PermissionEntry>>): PermissionTable {
  return new Map(Object.entries(entries));
}

type DeepReadonly<T> = T extends PermissionTable
  ? PermissionTable
  : T extends readonly (infer Item)[]
    ? readonly DeepReadonly<Item>[]
    : T extends object
      ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
      : T;

/** The effective settings: valid, and with all defaults. */
export type Config = DeepReadonly<z.output<typeof configSchema>>;
export type IssuerConfig = Config['issuers'][number];

/** The JSON Schema (draft 2020-12) of the file as written: settings with a default are optional. */
export function toJsonSchema(): z.core.JSONSchema.BaseSchema {
  return z.toJSONSchema(configSchema, { io: 'input', target: 'draft-2020-12' });
}

function cacheDirectoryProblem(path: string): string | undefined {
  return isAbsolute(path) && !path.includes('\0')
    ? undefined
    : 'must be an absolute path such as /var/cache/account-authz';
}

function adminAddressProblem(address: string): string | undefined {
  return address.startsWith('unix:')
    ? 'must be host:port or [v6]:port, not a Unix socket'
    : problemOf(parseListenAddress(address));
}

function problemOf(parsed: { readonly kind: string; readonly problem?: string }): string | undefined {
  return parsed.problem;
}

function requireOrderOfTimes(keys: unknown, context: z.RefinementCtx): void {
  requireAtLeast(keys, 'refreshSeconds', 'cooldownSeconds', context);
  requireAtLeast(keys, 'maxAgeSeconds', 'refreshSeconds', context);
}

function requireSafeListeners(config: unknown, context: z.RefinementCtx): void {
  const listen = addressOf(memberOf(config, 'listen'));
  const admin = addressOf(memberOf(config, 'admin'));
  const isPlain = memberOf(config, 'tls') === undefined && memberOf(config, 'listenInsecure') === false;
  if (listen?.kind === 'tcp' && !isLoopback(listen.host) && isPlain) {
    const remedy = 'set tls, listen on loopback or a Unix socket, or set listenInsecure: true';
    report(context, `must not accept calls from other machines without TLS: ${remedy}`, ['listen']);
  }
  if (listen !== undefined && admin !== undefined && isSameListener(listen, admin)) {
    report(context, 'must not overlap with listen: use another port', ['admin']);
  }
}

function addressOf(value: unknown) {
  if (typeof value !== 'string') return undefined;
  const address = parseListenAddress(value);
  return address.kind === 'problem' ? undefined : address;
}

/** A header that the configuration names is not under the identity prefix, and one of `token.from` is no account header. The names under it have few hyphens. */
function requireOwnHeaders(config: unknown, context: z.RefinementCtx): void {
  const prefix = memberOf(config, 'identityHeaders');
  const headersAt = (path: readonly PropertyKey[], items: unknown, nameOf: (item: unknown) => unknown) =>
    itemsOf(items).flatMap((item, i) => {
      const name = nameOf(item);
      return typeof name === 'string' ? [{ name: name.toLowerCase(), path: [...path, i] }] : [];
    });
  const ofAccount = headersAt(['account', 'headers'], memberOf(memberOf(config, 'account'), 'headers'), each => each);
  const ofToken = headersAt(['token', 'from'], memberOf(memberOf(config, 'token'), 'from'), each =>
    memberOf(each, 'header'),
  ).map(({ name, path }) => ({ name, path: [...path, 'header'] }));
  const accountNames = new Set(ofAccount.map(({ name }) => name));
  for (const { name, path } of ofToken)
    if (accountNames.has(name)) report(context, 'must not be one of account.headers', path);
  if (typeof prefix !== 'string' || identityPrefixProblem(prefix) !== undefined) return;
  const forwarded = memberOf(config, 'forwardClaims');
  for (const name of Object.keys(isJsonObject(forwarded) ? forwarded : {}))
    report(context, forwardedNameProblem(name, prefix), ['forwardClaims', name]);
  const ownedName = 'must not start with the prefix of identityHeaders: such headers are removed from requests';
  for (const { name, path } of [...ofAccount, ...ofToken])
    if (name.startsWith(prefix)) report(context, ownedName, path);
}
