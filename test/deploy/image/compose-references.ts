// Resolves the references between the parts of compose.yaml and the files that they mount: every port, path, service and job.
import type { ComposeFile, ComposeService } from './compose-file.ts';

export interface ComposeParts {
  readonly compose: ComposeFile;
  readonly prometheus: {
    readonly rule_files: readonly string[];
    readonly scrape_configs: readonly {
      readonly job_name: string;
      readonly metrics_path?: string;
      readonly static_configs: readonly { readonly targets: readonly string[] }[];
    }[];
  };
  readonly datasources: readonly { readonly name: string; readonly uid: string; readonly url: string }[];
  readonly dashboardFolders: readonly string[];
  /** Identifiers of data sources in the dashboard. */
  readonly dashboardSources: readonly string[];
  /** The job name in the expressions of the alerts. */
  readonly jobs: readonly RegExp[];
  readonly adminPort: number;
  readonly envoyAdminPort: number;
  readonly isFile: (path: string) => boolean;
}

type Rules = readonly (readonly [holds: boolean, problem: string])[];

export function composeReferenceProblems(parts: ComposeParts): string[] {
  const { services } = parts.compose;
  const rules: Rules = [
    ...Object.entries(services).flatMap(([name, service]) => serviceRules(parts, name, service)),
    ...portRules(parts),
    ...observerRules(parts),
  ];
  return rules.flatMap(([holds, problem]) => (holds ? [] : [problem]));
}

/** Ports that a service listens on, by its arguments; for images without arguments, their defaults. */
function listeningOf(
  { adminPort, envoyAdminPort }: ComposeParts,
  name: string,
  { command = [] }: ComposeService,
): number[] {
  const fromArguments = ['--listen', '--control'].flatMap(option =>
    command.includes(option) ? portIn(command[command.indexOf(option) + 1]) : [],
  );
  const known: Readonly<Record<string, readonly number[]>> = {
    'account-authz': [9191, adminPort],
    envoy: [8080, 8081, envoyAdminPort],
    prometheus: [9090],
    grafana: [3000],
  };
  return [...fromArguments, ...(known[name] ?? [])];
}

function portIn(address = ''): number[] {
  const [, port] = /:(\d+)(?:\/.*)?$/.exec(address) ?? [];
  return port === undefined ? [] : [Number(port)];
}

function serviceRules(parts: ComposeParts, name: string, service: ComposeService): Rules {
  const { services } = parts.compose;
  const { network_mode, pid, depends_on = {}, volumes = [], healthcheck, command = [], entrypoint = [] } = service;
  const named = [network_mode, pid].flatMap(mode =>
    mode?.startsWith('service:') ? [mode.slice('service:'.length)] : [],
  );
  const targets = volumes.map(volume => volume.split(':')[1] ?? '');
  const test = (healthcheck?.test ?? []).join(' ');
  const asked = Array.from(test.matchAll(/https?:\/\/127\.0\.0\.1:(\d+)/g), ([, port]) => Number(port));
  const read = [...command, ...entrypoint, ...(healthcheck?.test ?? [])].flatMap(text => {
    const [, path] = /^(?:--[\w.-]+=)?(\/etc\/\S+)$/.exec(text) ?? [];
    return path === undefined ? [] : [path];
  });
  return [
    ...[...named, ...Object.keys(depends_on)].map(
      other =>
        [services[other] !== undefined && other !== name, `${name} names ${other}, which is no service`] as const,
    ),
    ...volumes.map(
      volume => [parts.isFile(volume.split(':')[0] ?? ''), `${name} mounts ${volume}, which is not there`] as const,
    ),
    ...asked.map(
      port => [listeningOf(parts, name, service).includes(port), `${name} is asked for its health at ${port}`] as const,
    ),
    ...read.map(path => [isMounted(parts, service, path), `${name} reads ${path}, which is not mounted`] as const),
    [new Set(targets).size === targets.length, `${name} mounts two at one place`],
    ...Object.keys(depends_on).map(
      other =>
        [
          (services[other]?.profiles ?? service.profiles ?? []).every(each => service.profiles?.includes(each)),
          `${name} waits for ${other}, which is not started with it`,
        ] as const,
    ),
  ];
}

function isMounted({ isFile }: ComposeParts, { volumes = [] }: ComposeService, path: string): boolean {
  return volumes.some(volume => {
    const [source = '', target = ''] = volume.split(':');
    return path === target || (path.startsWith(`${target}/`) && isFile(`${source}${path.slice(target.length)}`));
  });
}

/** A container in the network namespace of another one is published there. */
function portRules(parts: ComposeParts): Rules {
  const { services } = parts.compose;
  return Object.entries(services).flatMap(([name, { ports = [] }]) => {
    const inside = Object.entries(services).filter(
      ([other, each]) => other === name || each.network_mode === `service:${name}`,
    );
    const listening = inside.flatMap(([other, each]) => listeningOf(parts, other, each));
    return [
      [new Set(listening).size === listening.length, `two services listen at one port of ${name}`] as const,
      ...ports.map(
        port =>
          [
            portIn(port).every(each => listening.includes(each)),
            `${name} publishes ${port}, on which nothing listens`,
          ] as const,
      ),
      ...ports.map(
        port =>
          [
            new RegExp(`:-${portIn(port)}\\}`).test(port),
            `${name} publishes ${port} at another port than it has inside`,
          ] as const,
      ),
    ];
  });
}

function observerRules(parts: ComposeParts): Rules {
  const { compose, prometheus, datasources, dashboardFolders, dashboardSources, jobs } = parts;
  const { services } = compose;
  const { prometheus: service = {}, grafana = {} } = services;
  const option = (name: string): string =>
    service.command?.find(each => each.startsWith(`--${name}=`))?.slice(name.length + 3) ?? '';
  const data = (service.tmpfs ?? []).map(each => each.split(':')[0]);
  const ports: Readonly<Record<string, number>> = {
    'account-authz': parts.adminPort,
    envoy: parts.envoyAdminPort,
    prometheus: 9090,
  };
  const checked = prometheus.scrape_configs.find(({ job_name }) => job_name === 'account-authz');
  return [
    [data.includes(option('storage.tsdb.path')), 'Prometheus cannot write its data'],
    ...prometheus.rule_files.map(
      path => [isMounted(parts, service, path), `Prometheus has no rules at ${path}`] as const,
    ),
    ...prometheus.scrape_configs.flatMap(
      ({ job_name, metrics_path, static_configs }): Rules => [
        [
          static_configs.flatMap(({ targets }) => targets).join() === `127.0.0.1:${ports[job_name]}`,
          `Prometheus scrapes ${job_name} at a port that it does not listen on`,
        ],
        [
          metrics_path === (job_name === 'envoy' ? '/stats/prometheus' : undefined),
          `Prometheus scrapes ${job_name} at another path`,
        ],
      ],
    ),
    [
      checked !== undefined && jobs.every(job => job.test(checked.job_name)),
      'Prometheus has a job that no alert knows',
    ],
    ...datasources.map(({ url }) => {
      const { hostname, port } = new URL(url);
      const isPlace = hostname === service.network_mode?.slice('service:'.length);
      return [isPlace && port === '9090', `Grafana queries metrics at ${url}`] as const;
    }),
    ...dashboardSources.map(
      uid =>
        [
          uid.startsWith('$') || datasources.some(each => each.uid === uid),
          `the dashboard queries ${uid}, which is no data source`,
        ] as const,
    ),
    ...dashboardFolders.map(
      folder =>
        [
          (grafana.volumes ?? []).some(each => each.split(':')[1]?.startsWith(`${folder}/`)),
          `Grafana has no dashboard in ${folder}`,
        ] as const,
    ),
    [
      (grafana.volumes ?? []).some(each => each.split(':')[1] === '/etc/grafana/provisioning'),
      'Grafana is provisioned with nothing',
    ],
  ];
}
