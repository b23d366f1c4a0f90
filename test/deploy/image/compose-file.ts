// Reads compose.yaml, and the rules for its containers, which are those of the manifests.

export interface ComposeFile {
  readonly services: Readonly<Record<string, ComposeService>>;
}

export interface ComposeService {
  readonly image?: string;
  readonly build?: unknown;
  readonly user?: string;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly cap_add?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly privileged?: boolean;
  readonly pids_limit?: number;
  readonly mem_limit?: string;
  readonly profiles?: readonly string[];
  readonly network_mode?: string;
  readonly ports?: readonly string[];
  readonly command?: readonly string[];
  readonly entrypoint?: readonly string[];
  readonly volumes?: readonly string[];
  readonly tmpfs?: readonly string[];
  readonly pid?: string;
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly healthcheck?: { readonly test: readonly string[] };
}

/** Images that this repository builds. */
const own = /^\$\{\w+:-account-authz(?:-demo)?:dev\}$/;
const pinned = /^\$\{\w+:-[a-z0-9.-]+\.[a-z0-9]+\/[a-z0-9./-]+:[\w.-]+@sha256:[0-9a-f]{64}\}$/;
/** An image without a pinned digest. */
const byTag = /^\$\{ENVOY_IMAGE:-docker\.io\/envoyproxy\/envoy:v\d+\.\d+\.\d+\}$/;
/** Services that no other one depends on. */
const withoutHealth = ['pod', 'client'];
const onNetworkOfTheirOwn = ['pod', 'grafana'];

export function composeProblems({ services }: ComposeFile): string[] {
  return Object.entries(services).flatMap(([name, service]) =>
    serviceProblems(name, service, services).map(problem => `${name} ${problem}`),
  );
}

function serviceProblems(name: string, service: ComposeService, services: ComposeFile['services']): string[] {
  const image = service.image ?? '';
  const test = service.healthcheck?.test;
  const holds: readonly (readonly [boolean, string])[] = [
    [/^[1-9]\d*:\d+$/.test(service.user ?? ''), 'does not run as a numeric user other than root'],
    [service.read_only === true, 'can write to its root'],
    [service.cap_drop?.join() === 'ALL' && service.cap_add === undefined, 'has capabilities'],
    [service.security_opt?.includes('no-new-privileges:true') === true, 'can gain privileges'],
    [service.privileged !== true, 'is privileged'],
    [(service.pids_limit ?? 0) > 0 && service.mem_limit !== undefined, 'has no limits'],
    [own.test(image) || pinned.test(image) || byTag.test(image), 'has an image that is not pinned'],
    [onNetworkOfTheirOwn.includes(name) || service.network_mode === 'service:pod', 'is outside of the pod'],
    [(service.ports ?? []).every(port => port.startsWith('127.0.0.1:')), 'is published beyond this machine'],
    [(service.volumes ?? []).every(volume => volume.endsWith(':ro')), 'can write to a folder of this machine'],
    [withoutHealth.includes(name) || test !== undefined, 'has no health check'],
    [test === undefined || test[0] === 'CMD', 'has its health asked by a shell'],
    [test?.every(argument => !argument.includes(' ')) !== false, 'has an argument that Podman would split'],
  ];
  const early = Object.entries(service.depends_on ?? {}).filter(([other, { condition }]) =>
    services[other]?.healthcheck === undefined ? condition !== 'service_started' : condition !== 'service_healthy',
  );
  return [
    ...holds.filter(([good]) => !good).map(([, problem]) => problem),
    ...early.map(([other]) => `does not wait for ${other}`),
  ];
}
