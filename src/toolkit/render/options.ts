// The options of `render` that say how the Envoy side is to be: what each takes, its help and its value.
import { isIP } from 'node:net';
import { parseRouteTemplate } from '../../authz/route-template.ts';
import { hasPlace } from '../../authz/token-places.ts';
import type { Config } from '../../config/schema.ts';
import {
  hostAndPort,
  isLoopback,
  isSameListener,
  isUnspecified,
  type ListenAddress,
  parseListenAddress,
  parsePeerAddress,
  type TcpAddress,
  toListenAddress,
  toTcpAddress,
} from '../../text/listen-address.ts';
import { type Problem, problem } from '../../text/problem.ts';
import { isOrigin } from '../../text/url.ts';
import { attachments, defaultOptions, isInPod, protocols, type RenderOptions } from '../envoy-settings/settings.ts';
import { isKubernetesName } from './rendered-files.ts';

type GivenOptions = Partial<RenderOptions>;

interface RenderOption {
  /** What stands for its value in the help; a switch has none. */
  readonly value?: string;
  readonly isRepeatable?: true;
  readonly help: string;
  /** The values in their order. The problem is the rest of a sentence about the option. */
  readonly parse: (texts: readonly string[]) => GivenOptions | Problem;
}

const { listen, readinessPort, envoyAdminPort, upstream, upstreamProtocol, trustedHops, authzHost, image, envoyImage } =
  defaultOptions;
const { attach, idleTimeoutSeconds, requestTimeoutSeconds, underscores } = defaultOptions;

const labelGrammar =
  /^((?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?)=((?:[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?)?)$/;

export const renderOptions = {
  listen: {
    value: 'HOST:PORT',
    help: `where Envoy listens, ${hostAndPort(listen.host, listen.port)} if not given; [::] takes IPv4 too`,
    parse: single(text => {
      const address = parsePeerAddress(text);
      if (address.kind === 'problem') return address;
      if (isIP(address.host) === 0) return problem('must have an IP address: Envoy resolves no name for a listener');
      return { listen: address };
    }),
  },
  'readiness-port': {
    value: 'N',
    help: `where Envoy answers GET /ready, ${readinessPort} if not given`,
    parse: number({ least: 1, most: 65_535, noun: 'a port' }, each => ({ readinessPort: each })),
  },
  'envoy-admin-port': {
    value: 'N',
    help: `the admin interface of Envoy, on loopback, ${envoyAdminPort} if not given`,
    parse: number({ least: 1, most: 65_535, noun: 'a port' }, each => ({ envoyAdminPort: each })),
  },
  upstream: {
    value: '[PATH=]HOST:PORT',
    isRepeatable: true,
    help: `the service behind Envoy, ${hostAndPort(upstream.host, upstream.port)} if not given; with PATH what lies under it goes there; repeatable`,
    parse: parseUpstreams,
  },
  'upstream-protocol': {
    value: 'PROTOCOL',
    help: `http1, http2 or auto (HTTP/2 for gRPC calls only), ${upstreamProtocol} if not given`,
    parse: oneOf(protocols, each => ({ upstreamProtocol: each })),
  },
  'authz-host': {
    value: 'HOST',
    help: `host of account-authz if listen of the configuration names none, ${authzHost} if not given`,
    parse: single(text => {
      const address = parseListenAddress(hostAndPort(text, 1));
      return address.kind === 'tcp' ? { authzHost: address.host } : problem('must be an IP address or a host name');
    }),
  },
  'cors-origin': {
    value: 'ORIGIN',
    isRepeatable: true,
    help: 'allows calls from pages of this origin, such as https://app.example.com; repeatable',
    parse: texts =>
      texts.every(isOrigin)
        ? { corsOrigins: [...new Set(texts)] }
        : problem(
            'must be an origin such as https://app.example.com: scheme, host and port, no wildcard and nothing else',
          ),
  },
  'cors-header': {
    value: 'NAME',
    isRepeatable: true,
    help: 'a further request header that those pages may send, such as idempotency-key; repeatable',
    parse: headerNames('a request header such as idempotency-key', corsHeaders => ({ corsHeaders })),
  },
  'cors-expose': {
    value: 'NAME',
    isRepeatable: true,
    help: 'a header of answers that those pages may read besides etag, link, location and ours, such as x-total-count; repeatable',
    parse: headerNames('a header of answers such as x-total-count', corsExposed => ({ corsExposed })),
  },
  'trusted-hops': {
    value: 'N',
    help: `proxies in front of Envoy that set x-forwarded-for, ${trustedHops} if not given`,
    parse: number({ least: 0, most: 99 }, each => ({ trustedHops: each })),
  },
  'request-timeout': {
    value: 'SECONDS',
    help: `time for a whole answer, for an upgrade until its 101; ${requestTimeoutSeconds} if not given: none`,
    parse: number({ least: 0, most: 604_800 }, each => ({ requestTimeoutSeconds: each })),
  },
  'idle-timeout': {
    value: 'SECONDS',
    help: `time without a byte either way, ${idleTimeoutSeconds} if not given`,
    parse: number({ least: 1, most: 604_800 }, each => ({ idleTimeoutSeconds: each })),
  },
  upgrade: {
    value: 'websocket',
    help: 'takes WebSocket handshakes on checked routes; the check is at the handshake',
    parse: oneOf(['websocket'], () => ({ takesWebSockets: true })),
  },
  underscores: {
    value: 'reject|drop',
    help: `what becomes of a header with an underscore in its name, ${underscores} if not given`,
    parse: oneOf(['reject', 'drop'], each => ({ underscores: each })),
  },
  'max-headers-kib': {
    value: 'N',
    help: 'the largest headers of a request, 24 and the longest token if not given',
    parse: number({ least: 1, most: 8192 }, each => ({ maxHeadersKib: each })),
  },
  'grpc-web': {
    help: 'takes gRPC-Web calls of pages; needs --upstream-protocol http2 or auto',
    parse: () => ({ takesGrpcWeb: true }),
  },
  shadow: {
    help: 'only asks and records, and changes the answer to no request; needs Envoy 1.38 (docs/shadow-mode.md)',
    parse: () => ({ isShadow: true }),
  },
  attach: {
    value: 'PLACE',
    help: `istio: the Envoy that checks: ${attachments.join(', ')}; ${attach} if not given`,
    parse: oneOf(attachments, each => ({ attach: each })),
  },
  merge: {
    help: 'envoy-gateway: the policy of the route merges with that of the Gateway, in place of replacing it (1.8)',
    parse: () => ({ merges: true }),
  },
  name: {
    value: 'NAME',
    help: 'kubernetes: only this Deployment; istio: prefix of the names; gateways: the HTTPRoute',
    parse: label(each => ({ name: each })),
  },
  gateway: {
    value: 'NAME',
    help: 'gateways: the Gateway, the value of --name if not given',
    parse: label(each => ({ gateway: each })),
  },
  namespace: {
    value: 'NAME',
    help: 'kubernetes, istio, gateways: namespace of the objects',
    parse: label(each => ({ namespace: each })),
  },
  'authz-namespace': {
    value: 'NAME',
    help: 'of account-authz where it is a Service, that of --namespace if not given',
    parse: label(each => ({ authzNamespace: each })),
  },
  selector: {
    value: 'KEY=VALUE,…',
    help: 'labels: kubernetes of the Deployments, istio of the pods, gateways of the HTTPRoute',
    parse: single(text => {
      const pairs = text.split(',').map(pair => labelGrammar.exec(pair) ?? []);
      const selector = Object.fromEntries(pairs.map(([, key = '', value = '']) => [key, value]));
      if (pairs.some(([pair]) => pair === undefined) || Object.keys(selector).length < pairs.length)
        return problem('must be KEY=VALUE, or several separated by commas: labels of Kubernetes, each once');
      return { selector };
    }),
  },
  image: {
    value: 'IMAGE',
    help: `kubernetes: of account-authz, ${image} if not given`,
    parse: imageReference(each => ({ image: each })),
  },
  'envoy-image': {
    value: 'IMAGE',
    help: `kubernetes: of Envoy, ${envoyImage} if not given`,
    parse: imageReference(each => ({ envoyImage: each })),
  },
} as const satisfies Readonly<Record<string, RenderOption>>;

export type OptionName = keyof typeof renderOptions;

const table: readonly (readonly [name: string, option: RenderOption])[] = Object.entries(renderOptions);

/** For `parseArgs` of Node. */
export const optionTypes: Readonly<
  Record<string, { readonly type: 'string' | 'boolean'; readonly multiple: boolean }>
> = Object.fromEntries(
  table.map(([name, { value, isRepeatable = false }]) => [
    name,
    { type: value === undefined ? 'boolean' : 'string', multiple: isRepeatable },
  ]),
);

export const optionsHelp = table
  .map(([name, { value = '', help }]) => `  ${`--${name} ${value}`.padEnd(30)}${help}\n`)
  .join('');

/** The options that are given, as `parseArgs` returns them, or the problem of one. */
export function parseOptions(values: Readonly<Record<string, unknown>>): GivenOptions | string {
  let given: GivenOptions = {};
  for (const [name, { parse }] of table) {
    const texts = values[name];
    if (texts === undefined) continue;
    const parsed = parse([texts].flat().map(String));
    if ('kind' in parsed) return `--${name} ${parsed.problem}`;
    given = { ...given, ...parsed };
  }
  if (given.authzNamespace !== undefined && given.namespace === undefined)
    return '--authz-namespace needs --namespace: a ReferenceGrant names both';
  const further = (['cors-header', 'cors-expose'] as const).find(name => values[name] !== undefined);
  if (further !== undefined && given.corsOrigins === undefined) return `--${further} needs --cors-origin`;
  const { takesGrpcWeb, takesWebSockets, upstreamProtocol: protocol = upstreamProtocol } = given;
  if (takesGrpcWeb && protocol === 'http1') return '--grpc-web needs --upstream-protocol http2 or auto: gRPC is HTTP/2';
  if (takesWebSockets && protocol === 'http2')
    return '--upgrade needs --upstream-protocol http1 or auto: over HTTP/2 few services take WebSockets';
  const changing = [
    'trusted-hops',
    'cors-origin',
    'request-timeout',
    'idle-timeout',
    'upgrade',
    'underscores',
    'max-headers-kib',
    'grpc-web',
  ];
  const idle = given.isShadow ? changing.find(name => values[name] !== undefined) : undefined;
  return idle === undefined ? given : `--shadow changes no answer, and --${idle} would: leave one of them out`;
}

/** Two listeners of one machine that cannot both be bound, among the options that the target has and the addresses of the configuration. */
export function addressProblem(
  { listen: listenOfConfig, admin }: Pick<Config, 'listen' | 'admin'>,
  options: RenderOptions,
  has: (name: OptionName) => boolean,
): string | undefined {
  const authz = toListenAddress(listenOfConfig);
  if (authz.kind === 'tcp' && authz.port === 0)
    return 'listen of the configuration must have a port other than 0 (any free port)';
  const addresses: readonly (readonly [OptionName, ListenAddress])[] = [
    ['envoy-admin-port', { kind: 'tcp', host: '127.0.0.1', port: options.envoyAdminPort }],
    ['readiness-port', { ...options.listen, port: options.readinessPort }],
    ['listen', options.listen],
  ];
  const bound: [name: string, address: ListenAddress][] = [['listen of the configuration', authz]];
  if (isInPod(authz)) bound.push(['admin of the configuration', toTcpAddress(admin)]);
  for (const [name, address] of addresses) {
    if (!has(name)) continue;
    const other = bound.find(([, each]) => isSameListener(each, address));
    if (other !== undefined) return `--${name} must differ from ${other[0]}`;
    bound.push([`--${name}`, address]);
  }
  for (const address of [options.upstream, ...options.upstreams.map(each => each.address)]) {
    const { host, port } = address;
    const isHere = isLoopback(host) || isUnspecified(host);
    const other = bound.find(([, each]) =>
      isHere ? isSameListener(each, address) : each.kind === 'tcp' && each.host === host && each.port === port,
    );
    if (other !== undefined) return `--upstream must differ from ${other[0]}: Envoy would send requests there`;
  }
  return undefined;
}

/** A page that reads answers by the cookie of a user, while the configuration does not trust it. */
export function originProblem({ from, origins }: Config['token'], { corsOrigins }: RenderOptions): string | undefined {
  const foreign = corsOrigins.find(each => hasPlace(from, 'cookie') && !origins?.includes(each));
  return (
    foreign && `--cors-origin ${foreign} must be one of token.origins: its pages would send the cookie and read answers`
  );
}

function parseUpstreams(texts: readonly string[]): GivenOptions | Problem {
  const upstreams: { readonly path: string; readonly address: TcpAddress }[] = [];
  for (const text of texts) {
    const [, path = '/', target = ''] = /^(?:([^=]*)=)?(.*)$/s.exec(text) ?? [];
    const address = parsePeerAddress(target);
    if (address.kind === 'problem') return address;
    if (path !== '/' && !isLiteralPath(path))
      return problem('must have a literal path before "=", such as /api/billing=127.0.0.1:9000');
    if (upstreams.some(each => each.path === path))
      return problem(path === '/' ? 'must be given once without a path' : `must be given once for ${path}`);
    upstreams.push({ path, address });
  }
  const main = upstreams.find(({ path }) => path === '/');
  return { ...(main && { upstream: main.address }), upstreams: upstreams.filter(each => each !== main) };
}

function isLiteralPath(path: string): boolean {
  const template = parseRouteTemplate(path);
  return template.kind !== 'problem' && !template.subtree && template.segments.every(({ kind }) => kind === 'literal');
}

function single(parse: (text: string) => GivenOptions | Problem): RenderOption['parse'] {
  return ([text = '']) => parse(text);
}

function number(
  { least, most, noun = 'a number' }: { readonly least: number; readonly most: number; readonly noun?: string },
  toOptions: (value: number) => GivenOptions,
): RenderOption['parse'] {
  return single(text => {
    const value = /^[0-9]{1,6}$/.test(text) ? Number(text) : -1;
    return value >= least && value <= most ? toOptions(value) : problem(`must be ${noun} from ${least} to ${most}`);
  });
}

function headerNames(noun: string, toOptions: (names: readonly string[]) => GivenOptions): RenderOption['parse'] {
  return texts =>
    texts.every(text => /^[A-Za-z0-9-]{1,128}$/.test(text))
      ? toOptions([...new Set(texts.map(text => text.toLowerCase()))])
      : problem(`must be the name of ${noun}`);
}

function oneOf<Word extends string>(
  words: readonly Word[],
  toOptions: (word: Word) => GivenOptions,
): RenderOption['parse'] {
  return single(text => {
    const word = words.find(each => each === text);
    return word === undefined ? problem(`must be one of ${words.join(', ')}`) : toOptions(word);
  });
}

function label(toOptions: (label: string) => GivenOptions): RenderOption['parse'] {
  return single(text =>
    isKubernetesName(text)
      ? toOptions(text)
      : problem('must be a Kubernetes name: 1 to 63 of a-z 0-9 -, a letter or digit first and last'),
  );
}

// A reference of the OCI distribution specification, without its finer rules: a registry reports those.
function imageReference(toOptions: (image: string) => GivenOptions): RenderOption['parse'] {
  return single(text =>
    /^[a-zA-Z0-9][\w./:@-]{0,511}$/.test(text)
      ? toOptions(text)
      : problem('must be the reference of an image such as registry.example.com/account-authz:1.2.3'),
  );
}
