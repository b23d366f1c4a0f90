// The options of `render` that say how the Envoy side is to be, and their values.
import { isIP } from 'node:net';
import { adminPort, readinessPort } from '../render/bootstrap.ts';
import {
  type EnvoyOptions,
  type UpstreamProtocol,
  upstreamProtocols,
  type WorkloadOptions,
} from '../render/settings.ts';
import type { OptionName } from '../render/targets.ts';
import { hostAndPort, isSameListener, parseListenAddress, type TcpAddress } from '../text/listen-address.ts';
import type { OptionDefinitions, OptionValues } from './command.ts';

export const renderOptions = {
  listen: { type: 'string' },
  upstream: { type: 'string' },
  'upstream-protocol': { type: 'string' },
  'authz-host': { type: 'string' },
  'cors-origin': { type: 'string', multiple: true },
  'trusted-hops': { type: 'string' },
  name: { type: 'string' },
  namespace: { type: 'string' },
  selector: { type: 'string' },
} as const satisfies Record<OptionName, OptionDefinitions[string]>;

type Values = OptionValues<typeof renderOptions>;
type GivenOptions = Partial<EnvoyOptions & WorkloadOptions>;

interface OptionProblem {
  readonly kind: 'problem';
  /** The rest of a sentence about the option. */
  readonly problem: string;
}

type Parser = (text: string) => GivenOptions | OptionProblem;

const problem = (text: string): OptionProblem => ({ kind: 'problem', problem: text });

const parsers: Readonly<Record<Exclude<OptionName, 'cors-origin'>, Parser>> = {
  listen(text) {
    const listen = parseAddress(text);
    if (listen.kind === 'problem') return listen;
    if (isIP(listen.host) === 0) return problem('must have an IP address: Envoy resolves no name for a listener');
    if (![adminPort, readinessPort].includes(listen.port)) return { listen };
    return problem(
      `must have another port: Envoy uses ${adminPort} for its admin interface and ${readinessPort} for readiness`,
    );
  },
  upstream(text) {
    const upstream = parseAddress(text);
    return upstream.kind === 'problem' ? upstream : { upstream };
  },
  'upstream-protocol'(text) {
    if (isUpstreamProtocol(text)) return { upstreamProtocol: text };
    return problem(`must be one of ${upstreamProtocols.join(', ')}`);
  },
  'authz-host'(text) {
    const address = parseListenAddress(hostAndPort(text, 1));
    return address.kind === 'tcp' ? { authzHost: address.host } : problem('must be an IP address or a host name');
  },
  'trusted-hops': text =>
    /^[0-9]{1,2}$/.test(text) ? { trustedHops: Number(text) } : problem('must be a number from 0 to 99'),
  name: text =>
    isLabel(text)
      ? { name: text }
      : problem('must be a Kubernetes name: 1 to 63 of a-z 0-9 -, a letter or digit first and last'),
  namespace: text =>
    isLabel(text)
      ? { namespace: text }
      : problem('must be a Kubernetes name: 1 to 63 of a-z 0-9 -, a letter or digit first and last'),
  selector(text) {
    const pairs = text.split(',').map(pair => /^([\w./-]{1,253})=([\w.-]{0,63})$/.exec(pair) ?? []);
    if (pairs.some(([, key]) => key === undefined)) return problem('must be KEY=VALUE, or several separated by commas');
    return { selector: Object.fromEntries(pairs.map(([, key = '', value = '']) => [key, value])) };
  },
};

/** The options that are given, or the problem of one. */
export function parseRenderOptions(values: Values): GivenOptions | string {
  let given: GivenOptions = {};
  for (const [name, parse] of Object.entries(parsers)) {
    const text = values[name as keyof typeof parsers];
    if (text === undefined) continue;
    const parsed = parse(text);
    if ('kind' in parsed) return `--${name} ${parsed.problem}`;
    given = { ...given, ...parsed };
  }
  const corsOrigins = values['cors-origin'];
  if (corsOrigins === undefined) return given;
  if (corsOrigins.every(isOrigin)) return { ...given, corsOrigins: [...new Set(corsOrigins)] };
  return '--cors-origin must be an origin such as https://app.example.com: scheme, host and port, nothing else';
}

export function addressProblem(listenOfConfig: string, { listen, upstream }: EnvoyOptions): string | undefined {
  const authz = parseListenAddress(listenOfConfig);
  if (authz.kind === 'problem') return `listen ${authz.problem}`;
  if (authz.kind === 'tcp' && authz.port === 0)
    return 'listen of the configuration must have a port other than 0 (any free port)';
  if (isSameListener(listen, upstream)) return '--upstream must differ from --listen';
  if (isSameListener(authz, upstream)) return '--upstream must differ from listen of the configuration';
  return isSameListener(authz, listen) ? '--listen must differ from listen of the configuration' : undefined;
}

function parseAddress(text: string): TcpAddress | OptionProblem {
  const address = parseListenAddress(text);
  if (address.kind === 'problem') return address;
  if (address.kind === 'unix') return problem('must be HOST:PORT or [v6]:PORT');
  return address.port === 0 ? problem('must have a port from 1 to 65535') : address;
}

function isUpstreamProtocol(text: string): text is UpstreamProtocol {
  return upstreamProtocols.some(each => each === text);
}

// A browser sends the origin as the URL standard serializes it.
function isOrigin(text: string): boolean {
  return /^https?:\/\//.test(text) && URL.canParse(text) && new URL(text).origin === text;
}

// RFC 1123 label, as Kubernetes wants it.
function isLabel(text: string): boolean {
  return /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(text);
}
