// Generated CheckRequests: a request that the token permits, with none, one or a few changes to its path, query, headers, form.
import type { CheckMessage, HttpAttributes } from '../oracle/message.ts';
import { certificates, hostAccounts } from './identities.ts';
import { type Random, words } from './random.ts';
import { changeRequest } from './request-changes.ts';
import type { RequestContext, RequestDraft } from './request-draft.ts';
import type { Setup } from './setup.ts';
import type { GeneratedToken } from './token-draft.ts';

export interface GeneratedRequest {
  readonly message: CheckMessage;
  /** The names of the changes. */
  readonly changes: readonly string[];
}

export function generateRequest(random: Random, setup: Setup, asked: GeneratedToken): GeneratedRequest {
  const { settings } = setup;
  const own = random.chance(0.85) ? asked : { ...asked, acc: random.pick(asked.accounts.filter(each => each !== '')) };
  const token = settings.lower && random.chance(0.3) ? { ...own, acc: own.acc.toUpperCase() } : own;
  const context: RequestContext = { random, setup, token };
  const draft: RequestDraft = {
    method: pickMethod(context),
    path: pickPath(context),
    query: undefined,
    host: pickHost(context),
    lines: tokenLines(context),
    certificate: pickCertificate(context),
    finish: [],
  };
  if (random.chance(0.3)) draft.lines.push(['x-request-id', random.pick(['r-1', 'a'.repeat(128), '0.A_z-9'])]);
  // A token of several accounts mostly needs a place that names one.
  const often = token.accounts.length > 1 && !draft.path.includes(token.acc) ? 0.7 : 0.3;
  for (const name of settings.accountHeaders) if (random.chance(often)) draft.lines.push([name, token.acc]);
  const parameters = settings.accountQuery.filter(() => random.chance(often)).map(name => `${name}=${token.acc}`);
  if (parameters.length > 0) draft.query = parameters.join('&');

  const count = random.weighted([
    [52, 0],
    [38, 1],
    [8, 2],
    [2, 4],
  ]);
  const changes = Array.from({ length: count }, () => changeRequest(draft, context));
  return { message: draft.finish.reduce((message, change) => change(message), toMessage(draft, random)), changes };
}

/** The token in one of its places, with other cookies and the origin of a page beside a cookie. */
function tokenLines({ random, setup, token }: RequestContext): [name: string, value: string][] {
  const { from, origins } = setup.settings;
  const place = random.pick(from);
  if (place === 'authorization') return [['authorization', `Bearer ${token.text}`]];
  if ('header' in place) return [[place.header, token.text]];
  if ('subprotocol' in place) return handshake(random, place.subprotocol, token.text, random.pick(origins));
  const others = random.some(['a=1', 'b="x"', 'theme=caf\u00e9', 'tok=x', 'empty=', 'flag'], 0);
  const pairs = [...others.slice(0, 1), `${place.cookie}=${token.text}`, ...others.slice(1)];
  const lines: [string, string][] = random.chance(0.8)
    ? [['cookie', pairs.join(random.pick(['; ', '; ', ';', ' ;\t']))]]
    : pairs.map(pair => ['cookie', pair]);
  return random.chance(0.7) ? [...lines, ['origin', random.pick(origins)]] : lines;
}

function handshake(random: Random, name: string, text: string, origin: string): [name: string, value: string][] {
  const items = [...random.some(['graphql-ws', 'v2', ''], 0), name, text, ...random.some(['a', 'b', ''], 0)];
  const lists = random.chance(0.8) ? [items.join(random.pick([', ', ',', ' ,\t']))] : items;
  return [
    ['connection', random.pick(['Upgrade', 'keep-alive, Upgrade'])],
    ['upgrade', random.pick(['websocket', 'WebSocket', 'h2c, websocket'])],
    ...(random.chance(0.9) ? [['origin', origin] satisfies [string, string]] : []),
    ...lists.map((list): [string, string] => ['sec-websocket-protocol', list]),
  ];
}

function pickMethod({ random, setup, token }: RequestContext): string {
  const granted = Object.values(setup.settings.roles).find(({ names }) => names.includes(token.role))?.grants ?? [
    'GET',
  ];
  const [method = 'GET'] = random.pick(granted).split(' ');
  return method === '*' ? random.pick(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) : method;
}

function pickPath({ random, setup, token }: RequestContext): string {
  const { routes } = setup.settings;
  const open = routes.filter(
    ({ roles }) => roles === undefined || roles.some(role => setup.settings.roles[role]?.names.includes(token.role)),
  );
  const chosen = random.pick(open.length > 0 && random.chance(0.9) ? open : routes);
  const { path } = chosen;
  const isWide = chosen.characters === 'rfc3986';
  const wide = (): string => (isWide && random.chance(0.5) ? random.pick(wideSegments) : 'items');
  const others = isWide ? wideSegments : ['eu', '1', 'a.b', '@me', token.acc, 'x:y~z'];
  const filled = path
    .split('/')
    .map(part =>
      part === `:${setup.settings.parameter}` ? token.acc : part.startsWith(':') ? random.pick(others) : part,
    )
    .join('/');
  if (!path.endsWith('/*')) return filled;
  return (
    filled.slice(0, -2) +
    random.pick(words(`||/|/${wide()}|/items/9/|/items/${wide()}|/:account_id|/accounts|/...|/~/-/_`, '|'))
  );
}

// Path characters of RFC 3986 beyond the strict grammar.
const wideSegments = [
  ...words('%20 a%20 caf%C3%A9 a=b,c (x)'),
  "it's",
  ...'$value !* %7Euser a%2Bb %41b a%23b items x&y a%40b ... ..%20 a..b%20 %E2%80%82x'.split(' '),
];

function pickHost({ random, setup, token }: RequestContext): string {
  const { hosts, parameter, lower } = setup.settings;
  if (hosts === undefined) return random.pick(['api.test', '', 'acct2.test:443']);
  const label = `:${parameter}`;
  const isLabel = hostAccounts.includes(lower ? token.acc.toLowerCase() : token.acc);
  const usable = hosts.filter(entry => (entry.startsWith(label) ? isLabel : !entry.startsWith('acct2')));
  return random.pick(usable).replace(label, token.acc) + random.pick(['', '', '', ':443', ':8443']);
}

/** Mostly the one of the client; Envoy encodes what no URL has. */
function pickCertificate({ random, token }: RequestContext): string {
  const [one = '', other = ''] = certificates.map(({ pem }) => pem);
  const own = random.chance(0.85) ? token.certificate : random.pick([one, other, '']);
  return random.weighted([
    [90, encodeURIComponent(own)],
    [4, encodeURIComponent(own + other)],
    [2, encodeURIComponent(other + own)],
    [2, own],
    [1, `%${own}`],
    [1, encodeURIComponent(own.replaceAll('CERTIFICATE', 'PRIVATE KEY'))],
  ]);
}

function toMessage({ method, path, query, host, lines, certificate }: RequestDraft, random: Random): CheckMessage {
  const target = query === undefined ? path : `${path}?${query}`;
  const isList = random.chance(0.6);
  const all: [string, string][] = random.chance(0.7)
    ? [
        [':method', method],
        [':path', target],
        ...(random.chance(0.7) && host !== '' ? [[':authority', host] as [string, string]] : []),
        ...lines,
      ]
    : lines;
  const http: HttpAttributes = {
    method,
    path: target,
    host,
    scheme: random.pick(['http', 'https', 'hTTps']),
    protocol: 'HTTP/1.1',
    query: '',
    fragment: '',
    headers: isList ? {} : joined(all),
    header_map: isList
      ? { headers: all.map(([key, value]) => ({ key, value: '', raw_value: Buffer.from(value) })) }
      : null,
  };
  const source = certificate === '' ? {} : { source: { certificate } };
  return { attributes: { ...source, request: { http }, context_extensions: {} } };
}

/** Joins the lines of one header like Envoy. */
function joined(lines: readonly (readonly [string, string])[]): Record<string, string> {
  const map = new Map<string, string>();
  for (const [name, value] of lines) map.set(name, map.has(name) ? `${map.get(name)},${value}` : value);
  return Object.fromEntries(map);
}
