// The options of `render` that say how the Envoy side is to be, and their values.
import { isIP } from 'node:net';
import type { Config } from '../../config/schema.ts';
import {
  hostAndPort,
  isSameListener,
  type ListenAddress,
  parseListenAddress,
  type TcpAddress,
  toListenAddress,
  toTcpAddress,
} from '../../text/listen-address.ts';
import { type Problem, problem } from '../../text/problem.ts';
import { isInPod, type RenderOptions, type UpstreamProtocol, upstreamProtocols } from '../settings.ts';

const single = { type: 'string' } as const;
const repeatable = { type: 'string', multiple: true } as const;

/** For `parseArgs` of Node. */
export const renderOptions = {
  listen: single,
  'readiness-port': single,
  'envoy-admin-port': single,
  upstream: single,
  'upstream-protocol': single,
  'authz-host': single,
  'cors-origin': repeatable,
  'cors-header': repeatable,
  'trusted-hops': single,
  name: single,
  gateway: single,
  namespace: single,
  selector: single,
  image: single,
  'envoy-image': single,
} as const;

export type OptionName = keyof typeof renderOptions;
type RepeatableName = 'cors-origin' | 'cors-header';
type SingleName = Exclude<OptionName, RepeatableName>;

/** As `parseArgs` returns them. */
type OptionTexts = { readonly [Name in OptionName]?: Name extends RepeatableName ? string[] : string };
type GivenOptions = Partial<RenderOptions>;

/** The problem is the rest of a sentence about the option. */
type Parser = (text: string) => GivenOptions | Problem;

const parsers: Readonly<Record<SingleName, Parser>> = {
  listen(text) {
    const listen = parseAddress(text);
    if (listen.kind === 'problem') return listen;
    if (isIP(listen.host) === 0) return problem('must have an IP address: Envoy resolves no name for a listener');
    return { listen };
  },
  'readiness-port': text => parsePort(text, readinessPort => ({ readinessPort })),
  'envoy-admin-port': text => parsePort(text, envoyAdminPort => ({ envoyAdminPort })),
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
  name: text => parseLabel(text, name => ({ name })),
  gateway: text => parseLabel(text, gateway => ({ gateway })),
  namespace: text => parseLabel(text, namespace => ({ namespace })),
  selector(text) {
    const pairs = text.split(',').map(pair => /^([\w./-]{1,253})=([\w.-]{0,63})$/.exec(pair) ?? []);
    if (pairs.some(([, key]) => key === undefined)) return problem('must be KEY=VALUE, or several separated by commas');
    return { selector: Object.fromEntries(pairs.map(([, key = '', value = '']) => [key, value])) };
  },
  image: text => parseImage(text, image => ({ image })),
  'envoy-image': text => parseImage(text, envoyImage => ({ envoyImage })),
};

/** The options that are given, or the problem of one. */
export function parseRenderOptions(values: OptionTexts): GivenOptions | string {
  let given: GivenOptions = {};
  for (const [name, parse] of Object.entries(parsers)) {
    const text = values[name as SingleName];
    if (text === undefined) continue;
    const parsed = parse(text);
    if ('kind' in parsed) return `--${name} ${parsed.problem}`;
    given = { ...given, ...parsed };
  }
  const { 'cors-origin': origins = [], 'cors-header': headers = [] } = values;
  if (!origins.every(isOrigin))
    return '--cors-origin must be an origin such as https://app.example.com: scheme, host and port, no wildcard and nothing else';
  if (!headers.every(isCorsHeader)) return '--cors-header must be the name of a request header such as idempotency-key';
  if (headers.length > 0 && origins.length === 0) return '--cors-header needs --cors-origin';
  const corsHeaders = new Set(headers.map(header => header.toLowerCase()));
  return { ...given, corsOrigins: [...new Set(origins)], corsHeaders: [...corsHeaders] };
}

/** Two listeners of one machine that cannot both be bound, among the options that the target has and the addresses of the configuration. */
export function addressProblem(
  { listen: listenOfConfig, admin }: Pick<Config, 'listen' | 'admin'>,
  { listen, upstream, readinessPort, envoyAdminPort }: RenderOptions,
  has: (name: OptionName) => boolean,
): string | undefined {
  const authz = toListenAddress(listenOfConfig);
  if (authz.kind === 'tcp' && authz.port === 0)
    return 'listen of the configuration must have a port other than 0 (any free port)';
  const options = {
    'envoy-admin-port': { kind: 'tcp', host: '127.0.0.1', port: envoyAdminPort },
    'readiness-port': { ...listen, port: readinessPort },
    listen,
    upstream,
  } as const;
  const bound: [name: string, address: ListenAddress][] = [['listen of the configuration', authz]];
  if (isInPod(authz)) bound.push(['admin of the configuration', toTcpAddress(admin)]);
  for (const [name, address] of Object.entries(options)) {
    if (!has(name as keyof typeof options)) continue;
    const other = bound.find(([, each]) => isSameListener(each, address));
    if (other !== undefined) return `--${name} must differ from ${other[0]}`;
    bound.push([`--${name}`, address]);
  }
  return undefined;
}

function parseAddress(text: string): TcpAddress | Problem {
  const address = parseListenAddress(text);
  if (address.kind === 'problem') return address;
  if (address.kind === 'unix') return problem('must be HOST:PORT or [v6]:PORT');
  return address.port === 0 ? problem('must have a port from 1 to 65535') : address;
}

function parsePort(text: string, toOptions: (port: number) => GivenOptions): GivenOptions | Problem {
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : 0;
  return port >= 1 && port <= 65_535 ? toOptions(port) : problem('must be a port from 1 to 65535');
}

// RFC 1123 label, as Kubernetes wants it.
function parseLabel(text: string, toOptions: (label: string) => GivenOptions): GivenOptions | Problem {
  return /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(text)
    ? toOptions(text)
    : problem('must be a Kubernetes name: 1 to 63 of a-z 0-9 -, a letter or digit first and last');
}

// A reference of the OCI distribution specification, without its finer rules: a registry reports those.
function parseImage(text: string, toOptions: (image: string) => GivenOptions): GivenOptions | Problem {
  return /^[a-zA-Z0-9][\w./:@-]{0,511}$/.test(text)
    ? toOptions(text)
    : problem('must be the reference of an image such as registry.example.com/account-authz:1.2.3');
}

function isCorsHeader(text: string): boolean {
  return /^[A-Za-z0-9-]{1,128}$/.test(text);
}

function isUpstreamProtocol(text: string): text is UpstreamProtocol {
  return upstreamProtocols.some(each => each === text);
}

// A browser sends the origin as the URL standard serializes it. A host with a wildcard is valid there, and equals that of no page.
function isOrigin(text: string): boolean {
  return /^https?:\/\/[^*]+$/.test(text) && URL.canParse(text) && new URL(text).origin === text;
}
