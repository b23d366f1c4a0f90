// Generated CheckRequests: a request that the token permits, with none, one or a few changes to its path, query, headers, form.
import type { CheckMessage, HttpAttributes } from '../oracle/message.ts';
import type { Random } from './random.ts';
import { changeRequest } from './request-changes.ts';
import type { RequestContext, RequestDraft } from './request-draft.ts';
import type { Setup } from './setup.ts';
import type { GeneratedToken } from './token-draft.ts';

export interface GeneratedRequest {
  readonly message: CheckMessage;
  /** The names of the changes. */
  readonly changes: readonly string[];
}

export function generateRequest(random: Random, setup: Setup, token: GeneratedToken): GeneratedRequest {
  const { settings } = setup;
  const context: RequestContext = { random, setup, token };
  const draft: RequestDraft = {
    method: pickMethod(context),
    path: pickPath(context),
    query: undefined,
    lines: [['authorization', `Bearer ${token.text}`]],
    finish: [],
  };
  if (random.chance(0.3)) draft.lines.push(['x-request-id', random.pick(['r-1', 'a'.repeat(128), '0.A_z-9'])]);
  for (const name of settings.accountHeaders) if (random.chance(0.3)) draft.lines.push([name, token.acc]);
  const parameters = settings.accountQuery.filter(() => random.chance(0.3)).map(name => `${name}=${token.acc}`);
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

function pickMethod({ random, setup, token }: RequestContext): string {
  const allowed = Object.entries(setup.settings.roles).find(([role]) => role === token.role)?.[1] ?? ['GET'];
  const method = random.pick(allowed);
  return method === '*' ? random.pick(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) : method;
}

function pickPath({ random, setup, token }: RequestContext): string {
  const { routes } = setup.settings;
  const open = routes.filter(({ roles }) => roles === undefined || roles.includes(token.role));
  const { path } = random.pick(open.length > 0 && random.chance(0.9) ? open : routes);
  const filled = path
    .replaceAll(':account_id', token.acc)
    .replaceAll(/:[A-Za-z_]+/g, () => random.pick(['eu', '1', 'a.b', '@me', token.acc, 'x:y~z']));
  if (!path.endsWith('/*')) return filled;
  return (
    filled.slice(0, -2) +
    random.pick(['', '', '/', '/items', '/items/9/', '/:account_id', '/accounts', '/...', '/~/-/_'])
  );
}

function toMessage({ method, path, query, lines }: RequestDraft, random: Random): CheckMessage {
  const target = query === undefined ? path : `${path}?${query}`;
  const isList = random.chance(0.6);
  const all: [string, string][] = random.chance(0.7) ? [[':method', method], [':path', target], ...lines] : lines;
  const http: HttpAttributes = {
    method,
    path: target,
    host: random.pick(['api.test', '', 'acct2.test:443']),
    scheme: random.pick(['http', 'https', 'hTTps']),
    protocol: 'HTTP/1.1',
    query: '',
    fragment: '',
    headers: isList ? {} : joined(all),
    header_map: isList
      ? { headers: all.map(([key, value]) => ({ key, value: '', raw_value: Buffer.from(value) })) }
      : null,
  };
  return { attributes: { request: { http }, context_extensions: {} } };
}

/** Joins the lines of one header like Envoy. */
function joined(lines: readonly (readonly [string, string])[]): Record<string, string> {
  const map = new Map<string, string>();
  for (const [name, value] of lines) map.set(name, map.has(name) ? `${map.get(name)},${value}` : value);
  return Object.fromEntries(map);
}
