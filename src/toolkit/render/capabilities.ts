// What each data plane can do, and what to do about the options that it lacks: the table of docs/deploy/README.md, the first comment of what
// `render` prints and its errors are made of it.
import type { OptionName } from './options.ts';

/** The words of the first comment, after "cannot", and the heading of the table. */
export const capabilities = [
  { name: 'earlyRemoval', verb: 'remove a forged header before the check', heading: 'early removal of headers' },
  { name: 'guard', verb: 'refuse a request that was not checked', heading: 'guard against what was not checked' },
  { name: 'timeLimit', verb: 'limit the time of the check', heading: 'time limit of the check' },
  { name: 'errorStatus', verb: 'answer 503 where the check fails', heading: 'status if the check fails' },
  { name: 'openRoutes', verb: 'exempt a route from the check', heading: 'route without the check' },
  { name: 'cors', verb: 'answer preflight requests before the check', heading: 'CORS before the check' },
  { name: 'upgrades', verb: 'check an upgrade', heading: 'upgrades' },
  { name: 'requestTimeout', verb: 'limit the time of a request', heading: 'time limit of a request' },
] as const;

type Capability = (typeof capabilities)[number]['name'];

export interface DataPlane {
  /** In the table, and in errors. */
  readonly title: string;
  /** How it does it, in a few words. Undefined: it cannot. */
  readonly can: Readonly<Record<Capability, string | undefined>>;
  /** What is lost besides: sentences. */
  readonly lost: readonly string[];
  /** Which releases let requests through, or are to be avoided: sentences. */
  readonly releases: readonly string[];
  /** For options that it does not have: what to do in their place. */
  readonly instead: Readonly<Partial<Record<OptionName, string>>>;
}

const envoy: DataPlane = {
  title: 'envoy, envoy-parts, kubernetes',
  can: {
    earlyRemoval: 'yes',
    guard: 'yes',
    timeLimit: '0.5 s',
    errorStatus: '503',
    openRoutes: 'yes',
    cors: '`--cors-origin`',
    upgrades: '`--upgrade`, off',
    requestTimeout: '`--request-timeout`',
  },
  lost: [],
  releases: ['Prefer Envoy 1.38.4, 1.39.1, 1.40.0 or later: older releases lack the security fixes of August 2026.'],
  instead: {},
};

/** What the Envoys of others have already. */
const ofTheirOwn: DataPlane['instead'] = {
  listen: 'set the port of the Service, or of the listeners of the Gateway',
  'readiness-port': 'these Envoys have probes already',
  'envoy-admin-port': 'these Envoys have their own',
};

const istio: DataPlane = {
  title: 'istio',
  can: { ...envoy.can, upgrades: 'WebSocket, always', requestTimeout: 'VirtualService' },
  lost: [
    'Istio merges an EnvoyFilter by the name of the filter: the workload must have no other ext_authz, and no second CUSTOM provider.',
  ],
  releases: [],
  instead: {
    ...ofTheirOwn,
    gateway: 'name the pods of a gateway by --attach gateway --selector',
    'request-timeout': 'set `timeout` in a VirtualService',
    upgrade: 'Istio takes WebSocket handshakes by itself; they are checked',
    'grpc-web': 'name the port of the Service grpc-web',
    'trusted-hops': 'set numTrustedProxies of the MeshConfig',
    'upstream-protocol': 'name the port of the Service, or set its appProtocol',
  },
};

const trial = 'run the trial with `render envoy --shadow` beside the service';

const waypoint: DataPlane = {
  title: 'istio --attach waypoint',
  can: { ...istio.can, earlyRemoval: undefined, openRoutes: undefined, cors: undefined },
  lost: [
    'A waypoint ignores an EnvoyFilter: it limits no change of an answer of account-authz, removes no trailers, refuses no header with an underscore and repeats no check. account-authz overwrites its identity headers and removes those with underscores; other spellings (x.auth.uid) reach the service, as do those of a header that overrides method or path, whose own name is refused (403).',
    'What is not for the Service, or does not pass its waypoint, is not checked: label the Service istio.io/use-waypoint, and istio.io/ingress-use-waypoint for calls of a gateway; leave istio.io/waypoint-for at service; refuse by an AuthorizationPolicy with the labels of the pods what does not come from the waypoint.',
  ],
  releases: [],
  instead: {
    ...istio.instead,
    'cors-origin': 'a waypoint answers preflight requests after the check; set it at the gateway (--attach gateway)',
    'cors-header': 'set it at the gateway (--attach gateway)',
    'cors-expose': 'set it at the gateway (--attach gateway)',
    'idle-timeout': 'a waypoint has no such setting; set it at the gateway (--attach gateway)',
    underscores: 'a waypoint passes such a header on; set it at the gateway (--attach gateway)',
    'max-headers-kib': 'a waypoint has its own bound; set it at the gateway (--attach gateway)',
    selector: 'the policies name the Service of --upstream',
    shadow: trial,
  },
};

const envoyGateway: DataPlane = {
  title: 'envoy-gateway',
  can: { ...envoy.can, guard: undefined, upgrades: 'WebSocket, always' },
  lost: [
    'It does not limit what an answer of account-authz changes, and does not remove trailers: docs/deploy/envoy-gateway.md has a patch.',
  ],
  releases: [
    'Prefer Envoy Gateway 1.1.0 or later: 1.0.0 to 1.0.2 and 1.1.0-rc.1 let requests through where a SecurityPolicy could not be translated, for example because its Service does not exist (envoyproxy/gateway#2837); since 1.1.0 such a route answers 500 (#3869). In 2025 a user reported it again (#5366): after each change, see that the policy is accepted, and run `account-authz verify`.',
  ],
  instead: {
    ...ofTheirOwn,
    upgrade: 'Envoy Gateway takes WebSocket handshakes by itself; they are checked',
    'max-headers-kib': 'set max_request_headers_kb in an EnvoyPatchPolicy',
    'grpc-web': 'a GRPCRoute takes gRPC-Web by itself',
    'upstream-protocol': 'set appProtocol of the Service',
    shadow: trial,
  },
};

const gatewayApi: DataPlane = {
  title: 'gateway-api',
  can: {
    earlyRemoval: undefined,
    guard: undefined,
    timeLimit: undefined,
    errorStatus: undefined,
    openRoutes: 'yes',
    cors: undefined,
    upgrades: 'WebSocket, always',
    requestTimeout: '`--request-timeout`',
  },
  lost: [
    'Cilium gives a check 200 ms, fixed (cilium#48354), and answers 403 where it fails.',
    'Both data planes remove headers after the check, and would remove what it set: no identity header is removed on a checked route. account-authz overwrites its own and removes those with underscores; other spellings (x.auth.uid) reach the service, on a public route those with underscores too, and there `*.` of account.hosts takes several labels.',
    'agentgateway matches and shows the path as it was sent, joins a header that comes twice by a comma, and removes what an answer removes before it sets. A cache in a policy of its own repeats an allow after a revocation: set none.',
    'Another HTTPRoute to the same service is a way around the check.',
  ],
  releases: [
    'Cilium before 1.20.0 ignores the filter and lets every request through (cilium#47178, fixed by #47265), and a later one without #47929 (August 2026) does where the ReferenceGrant or the Service is missing (#47877).',
    'cloud-provider-kind 0.11.1 accepts the route and ignores the filter (cloud-provider-kind#439). Other implementations may do the same: run `account-authz verify` before the route gets traffic, and after each upgrade.',
  ],
  instead: {
    ...ofTheirOwn,
    'cors-origin': 'Cilium asks before its CORS filter; with agentgateway add the filter CORS to the HTTPRoute',
    'cors-header': 'with agentgateway name it in the filter CORS of the HTTPRoute',
    'cors-expose': 'with agentgateway name it in the filter CORS of the HTTPRoute',
    'trusted-hops': 'set it in the data plane (Cilium: gatewayAPI.xffNumTrustedHops)',
    'idle-timeout': 'the data plane has its own; set that',
    underscores: 'the data plane passes such a header on; refuse it in the service',
    upgrade: 'WebSocket handshakes pass by themselves; they are checked',
    'max-headers-kib': 'the data plane has its own bound; set that',
    'grpc-web': 'Cilium takes gRPC-Web by itself',
    'upstream-protocol': 'set appProtocol of the Service',
    shadow: trial,
  },
};

const kgateway: DataPlane = {
  title: 'kgateway',
  can: { ...envoy.can, guard: undefined, earlyRemoval: 'exact names' },
  lost: [
    'It does not limit what an answer of account-authz changes, removes no trailers, and removes exact names before the check: other spellings of an identity header reach the service on a public route.',
    'A TrafficPolicy of yours with extAuth on the same route can replace this one. The x-request-id of a proxy in front is replaced, whatever --trusted-hops.',
  ],
  releases: [
    'A TrafficPolicy that names a route which does not exist is ignored in silence (kgateway#11402): see its condition Attached.',
  ],
  instead: {
    ...ofTheirOwn,
    underscores: 'kgateway passes such a header on; refuse it in the service',
    'grpc-web': 'translate it before the service, for example by an Envoy of `render envoy --grpc-web`',
    'upstream-protocol': 'set appProtocol of the Service',
    shadow: trial,
  },
};

/** In the order of the table. */
export const dataPlanes = { envoy, istio, waypoint, envoyGateway, gatewayApi, kgateway } as const satisfies Readonly<
  Record<string, DataPlane>
>;

/** The sentences of the comment at the top of what `render` prints. */
export function limitsOf({ can, lost, releases }: DataPlane): readonly string[] {
  const missing = capabilities.filter(({ name }) => can[name] === undefined).map(({ verb }) => verb);
  const cannot = missing.length === 0 ? [] : [`This data plane cannot ${missing.join('; ')}.`];
  return [...cannot, ...lost, ...releases];
}
