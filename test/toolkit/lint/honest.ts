// The shipped envoy.yaml with what honest bootstraps have beside it.
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { filter, type Part, type Shipped, shipped } from './shipped.ts';

const added: Part = parse(readFileSync(new URL('honest.yaml', import.meta.url), 'utf8'));

export function honest(): Shipped {
  const parts = shipped();
  const { root, listener, manager, host, routes, filters } = parts;
  merge(root, added.root);
  merge(listener, added.listener);
  merge(manager, added.manager);
  merge(host, added.host);
  merge(filters.at(-1).typed_config, added.router);
  merge(
    routes.find(({ route }) => route !== undefined),
    added.route,
  );
  routes.unshift(...added.routes);
  filters.unshift(...added.filters.flatMap((each: Part) => Object.entries<Part>(each).map(all => filter(...all))));
  return parts;
}

/** Members by their names; lists one after the other. */
function merge(into: Part, from: Part): void {
  for (const [name, value] of Object.entries<Part>(from)) {
    const own = into[name];
    if (Array.isArray(own)) own.push(...value);
    else if (typeof own === 'object') merge(own, value);
    else into[name] = value;
  }
}
