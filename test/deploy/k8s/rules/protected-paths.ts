// Paths: the paths that lead to the app are those that account-authz checks, and those that its configuration has routes for.
import { compileRoutes, matchRoutes } from '../../../../src/authz/route-tree.ts';
import { at, type Facts, listOf } from '../facts.ts';
import { ofKind } from '../manifest.ts';

interface Prefix {
  readonly who: string;
  /** Compares whole segments. */
  readonly prefix: string;
}

export function protectedPathProblems(facts: Facts): string[] {
  const prefixes = [...envoyPrefixes(facts), ...istioPrefixes(facts), ...gatewayPrefixes(facts)];
  if (prefixes.length === 0) return ['nothing leads to the app'];
  const { routes } = facts.config;
  const tree = compileRoutes(routes);
  const isKnown = (path: string): boolean =>
    matchRoutes(tree, { segments: path.slice(1).split('/'), decoded: undefined }).kind === 'match';
  const whos = new Set(prefixes.map(({ who }) => who));
  return [
    ...prefixes
      .filter(({ prefix }) => ![prefix, `${prefix}/x`, `${prefix}/x/y`].every(isKnown))
      .map(({ who, prefix }) => `${who} is checked for ${prefix}, for which the configuration has no route`),
    ...[...whos].flatMap(who =>
      routes
        .map(({ path }) => path.replace(/\/\*$/, '').replaceAll(/\/:\w+/g, '/x'))
        .filter(path => !prefixes.some(each => each.who === who && `${path}/`.startsWith(`${each.prefix}/`)))
        .map(path => `${who} is not checked for ${path}, for which the configuration has a route`),
    ),
  ];
}

/** Named by cluster, so that HTTP and gRPC routes are compared separately. */
function envoyPrefixes({ bootstrap }: Facts): Prefix[] {
  const listener = at(bootstrap, 'static_resources', 'listeners', 'public');
  const manager = at(listener, 'filter_chains', 0, 'filters', 0, 'typed_config');
  const hosts = listOf(at(manager, 'route_config', 'virtual_hosts'));
  return hosts
    .flatMap(host => listOf(at(host, 'routes')))
    .filter(route => at(route, 'route') !== undefined)
    .map(route => ({
      who: `Envoy to ${at(route, 'route', 'cluster')}`,
      prefix: String(at(route, 'match', 'path_separated_prefix')),
    }));
}

function istioPrefixes({ manifests }: Facts): Prefix[] {
  return ofKind(manifests, 'AuthorizationPolicy').flatMap(({ metadata, spec }) => {
    const paths = spec.rules
      .flatMap(({ to }) => to.map(({ operation }) => operation))
      .filter(({ ports }) => spec.action === 'CUSTOM' || ports?.includes('8000'))
      .flatMap(operation => operation.paths ?? []);
    // Istio does not match by whole segments: PREFIX and PREFIX/* are one.
    const wholes = paths.filter(path => !path.endsWith('*') && paths.includes(`${path}/*`));
    const halves = paths.filter(path => !wholes.some(whole => path === whole || path === `${whole}/*`));
    return [...wholes, ...halves].map(prefix => ({ who: `AuthorizationPolicy/${metadata.name}`, prefix }));
  });
}

function gatewayPrefixes({ manifests }: Facts): Prefix[] {
  return ofKind(manifests, 'HTTPRoute').flatMap(({ metadata, spec }) =>
    spec.rules.flatMap(({ matches }) =>
      matches.map(({ path }) => ({
        who: `HTTPRoute/${metadata.name}`,
        prefix: path.type === 'PathPrefix' ? path.value : `${path.value} as ${path.type}`,
      })),
    ),
  );
}
