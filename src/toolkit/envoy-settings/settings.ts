// What Envoy needs to know, derived from the configuration and the options of `render`.
import { isIP } from 'node:net';
import { allMethods, grantsOf, parseGrant } from '../../authz/permission.ts';
import type { HostEntry } from '../../authz/places/host-place.ts';
import { literalStart, toRouteTemplate } from '../../authz/route-template.ts';
import { hasPlace } from '../../authz/token-places.ts';
import type { Config } from '../../config/schema.ts';
import { hostEntries } from '../../headers/account-places.ts';
import type { HeaderRule } from '../../headers/header-rule.ts';
import { createIdentityHeaders, type IdentityHeaders, rewrittenNames, toHeaderRules } from '../../headers/headers.ts';
import { version } from '../../package.ts';
import {
  hostAndPort,
  isLoopback,
  isUnspecified,
  type ListenAddress,
  type TcpAddress,
  toListenAddress,
  toTcpAddress,
} from '../../text/listen-address.ts';
import { resourceMetadataPath } from '../../text/url.ts';

/** The part of the configuration that Envoy must agree with. */
export type EnvoyRelevantConfig = Pick<
  Config,
  | 'listen'
  | 'tls'
  | 'admin'
  | 'issuers'
  | 'token'
  | 'routes'
  | 'public'
  | 'account'
  | 'roles'
  | 'scopes'
  | 'protectedResource'
  | 'identityHeaders'
  | 'forwardClaims'
>;

/** http2: for everything. auto: for gRPC calls, and HTTP/1.1 for everything else. */
export const protocols = ['http1', 'http2', 'auto'] as const;
export type UpstreamProtocol = (typeof protocols)[number];

interface EnvoyOptions {
  readonly listen: TcpAddress;
  /** On the host of `listen`. */
  readonly readinessPort: number;
  /** On loopback. */
  readonly envoyAdminPort: number;
  readonly upstream: TcpAddress;
  /** Where what lies under a path goes instead, by whole segments. */
  readonly upstreams: readonly { readonly path: string; readonly address: TcpAddress }[];
  readonly upstreamProtocol: UpstreamProtocol;
  readonly corsOrigins: readonly string[];
  /** Request headers that pages of these origins may send besides the usual ones, in lower case. */
  readonly corsHeaders: readonly string[];
  /** Headers of answers that they may read besides the usual ones, likewise. */
  readonly corsExposed: readonly string[];
  readonly trustedHops: number;
  /** Of a whole answer, for an upgrade until its 101; 0: none. */
  readonly requestTimeoutSeconds: number;
  /** Without a byte either way. */
  readonly idleTimeoutSeconds: number;
  /** On checked routes alone. */
  readonly takesWebSockets: boolean;
  readonly underscores: 'reject' | 'drop';
  /** Undefined: what fits beside the longest token. */
  readonly maxHeadersKib: number | undefined;
  readonly takesGrpcWeb: boolean;
  /** Only asks and records. */
  readonly isShadow: boolean;
  /** Where account-authz is if `listen` of the configuration does not tell. */
  readonly authzHost: string;
}

/** Whose Envoy asks, in Istio. */
export const attachments = ['sidecar', 'gateway', 'waypoint'] as const;

/** The options of a workload in Kubernetes. */
interface WorkloadOptions {
  /** kubernetes: of the one Deployment; istio: before the names of the objects; gateways: of the HTTPRoute. */
  readonly name: string | undefined;
  readonly attach: (typeof attachments)[number];
  /** envoy-gateway: whether the policy of the route merges with that of the Gateway. */
  readonly merges: boolean;
  /** gateways: of the Gateway; undefined: `name`. */
  readonly gateway: string | undefined;
  readonly namespace: string | undefined;
  /** Of account-authz where it is a Service; undefined: `namespace`. */
  readonly authzNamespace: string | undefined;
  /** Its labels. */
  readonly selector: Readonly<Record<string, string>> | undefined;
  readonly image: string;
  readonly envoyImage: string;
}

export type RenderOptions = EnvoyOptions & WorkloadOptions;

/** A path that Envoy serves without a check. */
export interface PublicRoute {
  /** As the configuration writes it, with `/*` for a subtree. */
  readonly text: string;
  readonly path: string;
  /** Whether everything under the path is served too. */
  readonly subtree: boolean;
  readonly methods: readonly string[];
  readonly characters: 'strict' | 'rfc3986';
}

/** The metadata document of RFC 9728. */
export interface MetadataDocument {
  readonly path: string;
  /** The host of the resource. */
  readonly host: string;
  readonly json: string;
}

/** What Envoy must route, show and remove, wherever it and account-authz are. */
export interface EnvoyPolicy {
  /** The protected paths: each with everything under it, none under another. */
  readonly paths: readonly string[];
  readonly publicRoutes: readonly PublicRoute[];
  readonly metadata: MetadataDocument | undefined;
  /** Undefined: any host. */
  readonly hosts: readonly HostEntry[] | undefined;
  readonly methods: readonly string[];
  readonly accountHeaders: readonly string[];
  /** What account-authz is shown, the account headers included. */
  readonly shownHeaders: readonly string[];
  readonly identityPrefix: string;
  readonly identity: Pick<IdentityHeaders, 'all' | 'lookAlikes'>;
  readonly forwardsToken: boolean;
  /** Whether a token may be in a cookie, so that pages send credentials. */
  readonly hasCookiePlace: boolean;
  /** Headers that an allow may send back, whole but for the token: what only pages of `token.origins` may bring. */
  readonly rewrittenHeaders: readonly string[];
  readonly headers: readonly HeaderRule[];
}

export interface EnvoySettings extends EnvoyOptions, EnvoyPolicy {
  readonly authz: ListenAddress;
  /** The HTTP listener of account-authz. */
  readonly authzAdmin: TcpAddress;
  /** The largest headers of a request. */
  readonly headersKib: number;
  /** The TLS connection to account-authz. */
  readonly tls: { readonly serverName: string; readonly showsCertificate: boolean } | undefined;
}

export interface RenderSettings extends EnvoySettings, WorkloadOptions {
  /** `shutdown.graceSeconds`. */
  readonly graceSeconds: number;
  /** `cache.maxTokens`. */
  readonly maxTokens: number;
  /** The absolute names of the files that the configuration names, in the container of account-authz. */
  readonly namedFiles: readonly string[];
  /** `keys.cacheDirectory`. */
  readonly cacheDirectory: string | undefined;
  /** The configuration as it was written. */
  readonly configText: string;
}

export const defaultOptions: RenderOptions = {
  listen: { kind: 'tcp', host: '0.0.0.0', port: 8080 },
  readinessPort: 8081,
  envoyAdminPort: 9901,
  upstream: { kind: 'tcp', host: '127.0.0.1', port: 8000 },
  upstreamProtocol: 'http1',
  upstreams: [],
  corsOrigins: [],
  corsHeaders: [],
  corsExposed: [],
  trustedHops: 0,
  requestTimeoutSeconds: 0,
  idleTimeoutSeconds: 300,
  takesWebSockets: false,
  underscores: 'reject',
  maxHeadersKib: undefined,
  takesGrpcWeb: false,
  isShadow: false,
  authzHost: 'account-authz',
  attach: 'sidecar',
  merges: false,
  name: undefined,
  gateway: undefined,
  namespace: undefined,
  authzNamespace: undefined,
  selector: undefined,
  image: `ghcr.io/account-authz/account-authz:${version}`,
  envoyImage: 'docker.io/envoyproxy/envoy:distroless-v1.40.0',
};

// A browser sends OPTIONS itself.
const pageMethods = allMethods.filter(method => method !== 'OPTIONS');

const otherHeadersKib = 24;

export function toEnvoySettings(config: EnvoyRelevantConfig, options: EnvoyOptions): EnvoySettings {
  const authz = authzAddress(config.listen, options.authzHost);
  const serverName = authz.kind === 'tcp' && isIP(authz.host) === 0 ? authz.host : options.authzHost;
  return {
    ...options,
    ...toEnvoyPolicy(config, options.trustedHops),
    authz,
    authzAdmin: toTcpAddress(config.admin),
    headersKib: options.maxHeadersKib ?? otherHeadersKib + Math.ceil(config.token.maxBytes / 1024),
    tls: config.tls && { serverName, showsCertificate: config.tls.clientCaFile !== undefined },
  };
}

export function toEnvoyPolicy(config: EnvoyRelevantConfig, trustedHops = 0): EnvoyPolicy {
  const { account, roles, routes, identityHeaders, forwardClaims, token } = config;
  const publicRoutes = (config.public ?? []).map(toPublicRoute);
  const grants = [...roles.values()].flatMap(each => grantsOf(each).map(parseGrant));
  const methods = grants.flatMap(({ method }) => (method === '*' ? pageMethods : method));
  const headers = toHeaderRules(config, trustedHops);
  return {
    paths: toProtectedPaths(routes.map(({ path }) => literalStart(toRouteTemplate(path, account.parameter)))),
    publicRoutes,
    metadata: toMetadata(config),
    hosts: account.hosts && hostEntries(account),
    methods: [...new Set([...methods, ...publicRoutes.flatMap(route => route.methods)])],
    accountHeaders: account.headers.map(header => header.toLowerCase()),
    shownHeaders: headers.filter(({ shown }) => shown !== undefined).flatMap(({ names }) => names),
    identityPrefix: identityHeaders,
    identity: createIdentityHeaders(identityHeaders, forwardClaims),
    forwardsToken: token.forward,
    hasCookiePlace: hasPlace(token.from, 'cookie'),
    rewrittenHeaders: rewrittenNames(token.from),
    headers,
  };
}

function toPublicRoute({ path: text, methods, characters }: NonNullable<Config['public']>[number]): PublicRoute {
  const template = toRouteTemplate(text);
  return { text, path: literalStart(template), subtree: template.subtree, methods, characters };
}

/** RFC 9728 section 2. */
function toMetadata({ protectedResource, issuers, scopes, token }: EnvoyRelevantConfig): MetadataDocument | undefined {
  if (protectedResource === undefined) return undefined;
  const { resource } = protectedResource;
  // An issuer of one account is none that a client can choose before it has one, and the accounts are names of customers.
  const servers = issuers.flatMap(({ issuer, claims }) => (claims.acc === undefined ? [] : issuer));
  const document = {
    resource,
    ...(servers.length > 0 && { authorization_servers: servers }),
    ...(scopes && { scopes_supported: protectedResource.scopes ?? [...scopes.keys()] }),
    ...(token.from.includes('authorization') && { bearer_methods_supported: ['header'] }),
  };
  return { path: resourceMetadataPath(resource), host: new URL(resource).hostname, json: JSON.stringify(document) };
}

/** Without those that another covers. */
function toProtectedPaths(literalStarts: readonly string[]): readonly string[] {
  const paths = new Set(literalStarts);
  return [...paths].filter(path => !pathsAbove(path).some(each => paths.has(each)));
}

/** By whole segments, the path itself left out. */
function pathsAbove(path: string): readonly string[] {
  const segments = path.split('/').slice(1, -1);
  return path === '/' ? [] : ['/', ...segments.map((_, i) => `/${segments.slice(0, i + 1).join('/')}`)];
}

export function formatAddress(address: ListenAddress): string {
  return address.kind === 'unix' ? address.path : hostAndPort(address.host, address.port);
}

/** Whether Envoy and account-authz share a network namespace, that of a pod or a machine. */
export function isInPod(authz: ListenAddress): boolean {
  return authz.kind === 'unix' || isLoopback(authz.host);
}

// A service that listens on every address is reached by its name.
function authzAddress(listen: string, authzHost: string): ListenAddress {
  const own = toListenAddress(listen);
  if (own.kind === 'unix') return own;
  if (own.host === 'localhost') return { ...own, host: '127.0.0.1' };
  return isUnspecified(own.host) ? { ...own, host: authzHost } : own;
}
