// Typical upstreams: Express 5 with its defaults, mounted in the usual ways, and a server that parses
// its target with URL. Each reports the accounts of its handlers.
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import express, { type Express, type Request, type RequestHandler } from 'express';
import type { Layout } from './targets.ts';

/** The accounts of the handlers that run for a request, one or several from path and query; empty if no handler names one. */
type Upstream = (target: string) => readonly string[];

export const accountParameter = 'account_id';

/** What an upstream reports in the place of an account where it serves a template that no token may use. */
const anotherRoute = 'another route';

/** By name. The templates are those of the configuration. */
export function createUpstreams(layout: Templates): ReadonlyMap<string, Upstream> {
  return new Map([
    ['Express', createExpress(layout, 'simple')],
    ['Express, extended queries', createExpress(layout, 'extended')],
    ['Express, a router mounted', createMounted(layout)],
    ['Express, app.use with a parameter', createUsed(layout)],
    ['URL', createUrlReader(layout, false)],
    ['URL, empty segments left out', createUrlReader(layout, true)],
  ]);
}

type Templates = Pick<Layout, 'templates' | 'narrowed'>;

/** An application whose handlers report their accounts. */
export function createApplication(
  templates: readonly string[],
  handlerOf: (template: string) => RequestHandler,
): Express {
  const app = express();
  for (const template of mostSpecificFirst(templates)) app.all(expressPath(template), handlerOf(template));
  return app;
}

export function accountsOf(request: Request): string[] {
  return [...texts(request.params[accountParameter]), ...texts(request.query[accountParameter])];
}

function createExpress({ templates, narrowed }: Templates, queryParser: 'simple' | 'extended'): Upstream {
  const run = createRun(narrowed);
  const app = createApplication(templates, run.handlerOf);
  app.set('query parser', queryParser);
  return run.with(app);
}

/** Each router under the first segment. */
function createMounted({ templates, narrowed }: Templates): Upstream {
  const run = createRun(narrowed);
  const app = express();
  for (const template of mostSpecificFirst(templates)) {
    const [, first = '', rest = ''] = /^(\/[^/]+)(.*)$/.exec(template) ?? [];
    app.use(first, express.Router().all(expressPath(rest), run.handlerOf(template)));
  }
  return run.with(app);
}

/** By `app.use`, which takes everything under a path. */
function createUsed({ templates, narrowed }: Templates): Upstream {
  const run = createRun(narrowed);
  const app = express();
  for (const template of mostSpecificFirst(templates)) app.use(template.replace(/\/\*$/, ''), run.handlerOf(template));
  return run.with(app);
}

function createRun(narrowed: readonly string[] = []) {
  let accounts: string[] = [];
  const handlerOf =
    (template: string): RequestHandler =>
    (request: Request) => {
      accounts = narrowed.includes(template) ? [anotherRoute] : accountsOf(request);
    };
  return {
    handlerOf,
    with:
      (app: Express): Upstream =>
      target => {
        accounts = [];
        if (hasNoPort.test(target)) return accounts;
        const request = new IncomingMessage(socket);
        request.method = 'GET';
        request.url = target;
        request.headers = { host: 'api.test' };
        // Express passes its own refusal to the last argument; every handler of ours runs before this returns.
        app(request as Request, new ServerResponse(request) as never, () => undefined);
        return accounts;
      },
  };
}

const socket = new Socket();

// A target with an authority whose port is no number: Express parses it by url.parse, which Node is about to make throw (DEP0170).
const hasNoPort = /^[a-z]+:\/\/(?:[^/]*@)?[^/@:]*:\d*[^/\d]/i;

// `/*` is the path itself and everything under it.
function expressPath(template: string): string {
  return template.replace(/\/\*$/, '{/*rest}');
}

function mostSpecificFirst(templates: readonly string[]): readonly string[] {
  return [...templates].sort((one, other) => other.split('/').length - one.split('/').length);
}

// Like many hand-written servers: URL, split, decode, compare without case.
function createUrlReader({ templates, narrowed = [] }: Templates, withoutEmpty: boolean): Upstream {
  const split = (path: string): string[] =>
    path.split('/').filter((segment, i) => (withoutEmpty ? segment !== '' : i > 0));
  const patterns = mostSpecificFirst(templates).map(template => ({
    parts: split(template.replace(/\/\*$/, '')),
    isOpen: template.endsWith('/*'),
    isNarrowed: narrowed.includes(template),
  }));
  return target => {
    let url: URL;
    let segments: string[];
    try {
      url = new URL(target, 'http://api.test');
      segments = split(url.pathname).map(decodeURIComponent);
    } catch {
      return [];
    }
    if (segments.at(-1) === '') segments.pop();
    for (const { parts, isOpen, isNarrowed } of patterns) {
      if (isOpen ? segments.length < parts.length : segments.length !== parts.length) continue;
      const fits = parts.every((part, i) => part.startsWith(':') || part.toLowerCase() === segments[i]?.toLowerCase());
      if (!fits) continue;
      if (isNarrowed) return [anotherRoute];
      const inPath = segments.filter((_, i) => parts[i] === `:${accountParameter}`);
      return [...inPath, ...url.searchParams.getAll(accountParameter)];
    }
    return [];
  };
}

/** The strings in the output of a query parser, at any depth. */
function texts(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(texts);
}
