// The routes, public routes and places of the account that say what an OpenAPI document says, as few as possible.
import { foldCase, isStrictSegment } from '../../authz/path.ts';
import { isMethodOverride } from '../../authz/places/query-place.ts';
import {
  defaultAccountParameter,
  parameterGrammar,
  parseRouteTemplate,
  toRouteTemplate,
} from '../../authz/route-template.ts';
import { createOverlapIndex } from '../../config/route-rules.ts';
import { accountHeaderProblem } from '../../headers/headers.ts';
import { toPlainName } from '../openapi/coverage.ts';
import type { Operation } from '../openapi/operations.ts';

export interface FirstRoutes {
  readonly routes: readonly { readonly path: string; readonly hasAccount: boolean; readonly hasOthers: boolean }[];
  readonly public: readonly { readonly path: string; readonly methods: readonly string[] }[];
  readonly account: {
    readonly parameter: string;
    readonly headers: readonly string[];
    readonly query: readonly string[];
  };
  /** Public operations that a protected one hides. */
  readonly keptChecked: readonly Operation[];
  /** Those whose path or method account-authz never permits. */
  readonly leftOut: readonly Operation[];
  /** Path parameters that may be the account, where there are several. */
  readonly accountNames: readonly string[];
}

/** What parameters call an account, the most likely first. */
const stems = [/^acc(?:ount)?$/, /^tenant$/, /^org(?:ani[sz]ation)?$/, /^workspace$/, /^company$/, /^customer$/];

function stemOf(name: string): number {
  const plain = toPlainName(name)
    .replace(/^x(?=.{3})/, '')
    .replace(/(?:[gsu]?id|uuid|slug|name|number)$/, '');
  return stems.findIndex(stem => stem.test(plain));
}

export function toFirstRoutes(all: readonly Operation[]): FirstRoutes {
  const parameters = all.flatMap(operation => operation.parameters);
  const named = (where: string) => [
    ...new Set(parameters.flatMap(each => (each.in === where && stemOf(each.name) >= 0 ? [each.name] : []))),
  ];
  const inPath = named('path').sort((one, other) => stemOf(one) - stemOf(other));
  const stem = Math.min(...[...(inPath.length > 0 ? inPath : [...named('header'), ...named('query')])].map(stemOf));
  const ofStem = (where: string) => named(where).filter(name => stemOf(name) === stem);
  const parameter = ofStem('path').find(name => parameterGrammar.test(name)) ?? defaultAccountParameter;

  const segmentsOf = ({ segments }: Operation): readonly string[] =>
    segments.flatMap((each, i) => {
      if (each.kind === 'literal' && each.text === '') return i === segments.length - 1 ? [] : [''];
      if (each.kind === 'parameter' && stemOf(each.name) === stem) return [`:${parameter}`];
      return each.kind === 'literal' && isStrictSegment(each.text) && !each.text.startsWith(':')
        ? [each.text]
        : [anySegment];
    });
  const operations = all.filter(
    each =>
      /^[A-Z]{1,32}$/.test(each.method) && parseRouteTemplate(toPath(segmentsOf(each)), parameter).kind === 'template',
  );
  const usable = new Set(operations);
  const overlaps = (paths: readonly string[]) =>
    createOverlapIndex(
      paths.map(path => toRouteTemplate(path, parameter)),
      foldCase,
    );

  // A public operation whose paths a protected one has too is checked, and may then hide another.
  let open = operations.filter(({ access }) => access === 'public');
  let checked = operations.filter(({ access }) => access !== 'public');
  for (let isStable = false; !isStable; ) {
    const hides = overlaps(checked.flatMap(each => (segmentsOf(each).length === 0 ? [] : [toPath(segmentsOf(each))])));
    const kept = open.filter(each => {
      const path = publicPath(segmentsOf(each));
      return path !== undefined && !hides(toRouteTemplate(path));
    });
    isStable = kept.length === open.length;
    const isKept = new Set(kept);
    checked = [...checked, ...open.filter(each => !isKept.has(each))];
    open = kept;
  }
  const root = createNode();
  for (const each of checked) addPath(root, segmentsOf(each), 'checked');
  for (const each of open) addPath(root, segmentsOf(each), 'open');
  const paths = [...root.children].flatMap(([name, node]) => routesOf(node, [name], `:${parameter}`));
  const hides = paths.length === 0 ? () => false : overlaps(paths);
  const methodsByPath = new Map<string, Set<string>>();
  for (const each of open) {
    const path = publicPath(segmentsOf(each)) ?? '';
    if (hides(toRouteTemplate(path))) continue;
    const methods = methodsByPath.get(path) ?? new Set();
    for (const method of each.method === 'GET' ? ['GET', 'HEAD'] : [each.method]) methods.add(method);
    methodsByPath.set(path, methods);
  }
  return {
    routes: paths.map(path => ({
      path,
      hasAccount: path.split('/').includes(`:${parameter}`),
      hasOthers: path.includes('/:'),
    })),
    public: [...methodsByPath].map(([path, methods]) => ({ path, methods: [...methods] })),
    account: {
      parameter,
      headers: [...new Set(ofStem('header').map(name => name.toLowerCase()))].filter(
        // The second is the default of identityHeaders.
        name => accountHeaderProblem(name) === undefined && !name.startsWith('x-auth-'),
      ),
      query: distinct(ofStem('query')).filter(name => /^[A-Za-z0-9._~-]{1,128}$/.test(name) && !isMethodOverride(name)),
    },
    keptChecked: operations.filter(
      each => each.access === 'public' && !methodsByPath.has(publicPath(segmentsOf(each)) ?? ''),
    ),
    leftOut: all.filter(each => !usable.has(each)),
    accountNames: inPath.some(name => stemOf(name) !== stem) ? inPath : [],
  };
}

/** One of the names that differ in case or dots alone: the configuration takes no second one. */
function distinct(names: readonly string[]): readonly string[] {
  return [...new Map(names.map(name => [name.toLowerCase().replaceAll('.', '_'), name])).values()];
}

/** Any one segment, and what no template can write. */
const anySegment = ':other';

function toPath(segments: readonly string[]): string {
  return `/${segments.join('/')}`;
}

/** A public route is literal: from the first parameter on, everything. */
function publicPath(segments: readonly string[]): string | undefined {
  const end = segments.findIndex(each => each.startsWith(':'));
  if (segments.length === 0 || end === 0) return undefined;
  return end === -1 ? toPath(segments) : `${toPath(segments.slice(0, end))}/*`;
}

interface PathNode {
  readonly children: Map<string, PathNode>;
  isChecked: boolean;
  /** Whether a public operation is here or below. */
  hasOpen: boolean;
  hasChecked: boolean;
}

function createNode(): PathNode {
  return { children: new Map(), isChecked: false, hasOpen: false, hasChecked: false };
}

function addPath(root: PathNode, segments: readonly string[], kind: 'checked' | 'open'): void {
  let node = root;
  const mark = (): void => {
    if (kind === 'open') node.hasOpen = true;
    else node.hasChecked = true;
  };
  for (const segment of segments) {
    const child = node.children.get(segment) ?? createNode();
    node.children.set(segment, child);
    node = child;
    mark();
  }
  node.isChecked ||= kind === 'checked';
}

function routesOf(node: PathNode, prefix: readonly string[], account: string): readonly string[] {
  if (!node.hasChecked) return [];
  const below = (): readonly string[] =>
    [...node.children].flatMap(([name, child]) => routesOf(child, [...prefix, name], account));
  // A literal that has no operation and one way on says nothing by itself; neither may what is public be covered.
  const [only, ...more] = node.children.keys();
  const leadsOn =
    !node.isChecked && prefix.at(-1) !== account && only !== undefined && more.length === 0 && only !== anySegment;
  if (leadsOn) return below();
  if (node.hasOpen) return [...(node.isChecked ? [toPath(prefix)] : []), ...below()];
  const isLeaf = node.children.size === 0 && prefix.at(-1) !== account;
  return [`${toPath(prefix)}${isLeaf ? '' : '/*'}`, ...accountsUnder(node, prefix, account)];
}

/** A route for each place of the account under a route that covers them all. */
function accountsUnder(node: PathNode, prefix: readonly string[], account: string): readonly string[] {
  return [...node.children].flatMap(([name, child]) => {
    const path = [...prefix, name];
    return [...(name === account ? [`${toPath(path)}/*`] : []), ...accountsUnder(child, path, account)];
  });
}
