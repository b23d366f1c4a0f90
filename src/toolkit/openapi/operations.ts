// The operations of an OpenAPI document: method, path as clients send it, parameters, and whether the document protects them.

import { isStrictSegment } from '../../authz/path.ts';
import { isJsonObject, itemsOf, memberOf, parsePath, valueAt } from '../../json/strict-json.ts';
import { quotedPrintable } from '../../text/printable.ts';
import type { OpenApiDocument } from './document.ts';

export interface Operation {
  /** As it is sent: upper case, but for what `additionalOperations` says. */
  readonly method: string;
  /** Of the server and of the document, as the document writes it. */
  readonly path: string;
  readonly segments: readonly OperationSegment[];
  /** `optional`: with and without credentials. `unsaid`: the document has no `security` at all. */
  readonly access: 'protected' | 'public' | 'optional' | 'unsaid';
  /** Path parameters are those of the path, whatever is declared. */
  readonly parameters: readonly OperationParameter[];
  /** Roles or scopes that `security` names. */
  readonly names: readonly string[];
}

export type OperationSegment =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'parameter'; readonly name: string }
  /** A parameter beside text: `{name}.json`. */
  | { readonly kind: 'mixed'; readonly text: string; readonly names: readonly string[] };

export interface OperationParameter {
  readonly name: string;
  /** `path`, `query`, `header`, `cookie`; of Swagger 2.0 also `formData` and `body`. */
  readonly in: string;
}

export interface CoverageProblem {
  readonly severity: 'error' | 'warning' | 'information';
  readonly method?: string;
  readonly path?: string;
  /** In the document or in the configuration, where it is about no operation. */
  readonly place?: string;
  readonly message: string;
}

export interface Operations {
  readonly operations: readonly Operation[];
  /** What of the document cannot be read: errors. */
  readonly problems: readonly CoverageProblem[];
}

const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace', 'query'];

/** `basePath` takes the place of every server. */
export function readOperations({ root, major }: OpenApiDocument, basePath?: string): Operations {
  const found: (Omit<Operation, 'access'> & { readonly security: unknown })[] = [];
  const problems: CoverageProblem[] = [];
  const seen = new Map<string, string>();
  const paths = memberOf(root, 'paths');
  const items = Object.entries(isJsonObject(paths) ? paths : {}).filter(([path]) => !path.startsWith('x-'));
  if (paths !== undefined && !isJsonObject(paths)) report('paths', 'must be a mapping');

  function report(place: string, message: string): void {
    problems.push({ severity: 'error', place, message });
  }

  /** The object there, through references inside the document; undefined and a problem where one leads elsewhere. */
  function follow(value: unknown, place: string): Readonly<Record<string, unknown>> | undefined {
    const followed = new Set<string>();
    let object = value;
    for (let ref = memberOf(object, '$ref'); ref !== undefined; ref = memberOf(object, '$ref')) {
      const target = typeof ref === 'string' && ref.startsWith('#') ? pointerOf(ref) : undefined;
      const shown = quotedPrintable(String(ref), 128);
      if (typeof ref !== 'string' || !ref.startsWith('#'))
        report(place, `$ref ${shown} leads out of the document, which is not followed: bundle it first`);
      else if (followed.has(ref)) report(place, `$ref ${shown} is circular`);
      else if (target === undefined || valueAt(root, target) === undefined)
        report(place, `$ref ${shown} leads nowhere`);
      else {
        followed.add(ref);
        object = valueAt(root, target);
        continue;
      }
      return undefined;
    }
    if (isJsonObject(object)) return object;
    report(place, 'must be a mapping');
    return undefined;
  }

  function parametersOf(value: unknown, place: string): readonly OperationParameter[] {
    return itemsOf(value).flatMap((each, i) => {
      const parameter = follow(each, `${place}.parameters[${i}]`);
      if (parameter === undefined) return [];
      const { name, in: where } = parameter;
      if (typeof name === 'string' && typeof where === 'string') return [{ name, in: where }];
      report(`${place}.parameters[${i}]`, 'must have a name and "in"');
      return [];
    });
  }

  const rootSecurity = memberOf(root, 'security');
  let isSecured = rootSecurity !== undefined;

  function addOperation(
    method: string,
    text: string,
    value: unknown,
    place: string,
    item: { readonly own: Readonly<Record<string, unknown>>; readonly parameters: readonly OperationParameter[] },
  ): void {
    const operation = follow(value, place);
    if (operation === undefined) return;
    const servers = [operation.servers, item.own.servers, memberOf(root, 'servers')].find(
      each => itemsOf(each).length > 0,
    );
    const base = basePath ?? (major === 2 ? memberOf(root, 'basePath') : serverPath(itemsOf(servers)[0]));
    const path = `${typeof base === 'string' ? base.replace(/(?<!\/)\/+$/, '') : ''}${text}`;
    const cut = /^[^?#]*/.exec(path)?.[0] ?? '';
    if (cut !== path) report(place, 'has a query or a fragment in its path: an operation is a method and a path');
    const key = `${method} ${path.replace(/\{[^{}/]*\}/g, '{}')}`;
    const known = seen.get(key);
    if (known !== undefined && cut === path)
      report(place, `is the same operation as ${known}: the names of parameters make no difference`);
    seen.set(key, place);
    const segments = cut.split('/').slice(1).map(toSegment);
    const inPath = segments.flatMap(each =>
      each.kind === 'literal' ? [] : each.kind === 'mixed' ? each.names : [each.name],
    );
    const own = parametersOf(operation.parameters, place);
    // An operation's parameter replaces that of its path with the same name and place.
    const inherited = item.parameters.filter(each => !own.some(one => one.name === each.name && one.in === each.in));
    const parameters = [...inherited, ...own].filter(each => each.in !== 'path');
    isSecured ||= operation.security !== undefined;
    const security = operation.security ?? rootSecurity;
    found.push({
      method,
      path,
      segments,
      security,
      parameters: [...inPath.map(name => ({ name, in: 'path' })), ...parameters],
      names: itemsOf(security)
        .flatMap(each => Object.values(isJsonObject(each) ? each : {}).flatMap(itemsOf))
        .filter(each => typeof each === 'string'),
    });
  }

  for (const [path, value] of items) {
    const place = `paths[${quotedPrintable(path, 256)}]`;
    if (!path.startsWith('/')) report(place, 'must start with "/"');
    const target = follow(value, place);
    if (target === undefined) continue;
    // Beside a reference, a path may have members of its own.
    const own = { ...target, ...(isJsonObject(value) && value) };
    const item = { own, parameters: parametersOf(own.parameters, place) };
    const text = path.startsWith('/') ? path : `/${path}`;
    for (const [name, operation] of Object.entries(own)) {
      const method = name.toLowerCase();
      if (!methods.includes(method)) continue;
      if (name !== method) report(`${place}.${name}`, `must be written in lower case: ${method}`);
      addOperation(method.toUpperCase(), text, operation, `${place}.${method}`, item);
    }
    const others = own.additionalOperations;
    for (const [method, operation] of Object.entries(isJsonObject(others) ? others : {}))
      addOperation(method, text, operation, `${place}.additionalOperations[${quotedPrintable(method, 32)}]`, item);
  }
  const operations = found.map(({ security, ...each }) => ({
    ...each,
    access: isSecured ? accessOf(security) : ('unsaid' as const),
  }));
  return { operations, problems };
}

function pointerOf(ref: string): readonly string[] | undefined {
  try {
    const pointer = decodeURIComponent(ref.slice(1));
    return pointer === '' ? [] : pointer.startsWith('/') ? parsePath(pointer) : undefined;
  } catch {
    return undefined;
  }
}

/** The path of a server's URL, with the defaults of its variables. A variable without one stands for any segment. */
function serverPath(server: unknown): string {
  const url = memberOf(server, 'url');
  if (typeof url !== 'string') return '';
  const variables = memberOf(server, 'variables');
  const filled = url.replace(/\{([^{}]*)\}/g, (text, name: string) => {
    const value = memberOf(memberOf(variables, name), 'default');
    return typeof value === 'string' || typeof value === 'number' ? String(value) : text;
  });
  const path = (/^(?:[A-Za-z][A-Za-z0-9+.-]*:)?(?:\/\/[^/?#]*)?([^?#]*)/.exec(filled)?.[1] ?? '').replace(
    /^\.(?=\/|$)/,
    '',
  );
  return path === '' || path.startsWith('/') ? path : `/${path}`;
}

function accessOf(security: unknown): Operation['access'] {
  const requirements = itemsOf(security);
  const isOpen = (each: unknown): boolean => isJsonObject(each) && Object.keys(each).length === 0;
  if (requirements.every(isOpen)) return 'public';
  return requirements.some(isOpen) ? 'optional' : 'protected';
}

function toSegment(text: string): OperationSegment {
  const names = Array.from(text.matchAll(/\{([^{}]*)\}/g), ([, name = '']) => name);
  const [name] = names;
  if (name === undefined) return { kind: 'literal', text };
  return text === `{${name}}` ? { kind: 'parameter', name } : { kind: 'mixed', text, names };
}

/** In the place of a parameter: some segment that is no literal of a template. */
const sample = '~any~';

/** A path that a client sends for the operation. */
export function sentPath({ segments }: Pick<Operation, 'segments'>): string {
  const sent = segments.map(each =>
    each.kind === 'parameter' ? sample : encoded(each.text.replace(/\{[^{}]*\}/g, sample)),
  );
  return `/${sent.join('/')}`;
}

// A document may write a segment encoded or not.
function encoded(text: string): string {
  return isStrictSegment(text)
    ? text
    : text.replace(/[^A-Za-z0-9._~:@!$&'()*+,;=%-]+/g, characters =>
        Array.from(Buffer.from(characters), byte => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join(''),
      );
}
