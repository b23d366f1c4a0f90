// The policy in effect on the admin page: routes, and what each role and scope may do.
import type { PermissionTable } from '../authz/permission.ts';
import { printable } from '../text/printable.ts';
import { formatCount } from './admin-page-format.ts';
import { type Html, html } from './admin-page-html.ts';
import { codes, pairList } from './admin-page-parts.ts';

/** Members of the configuration. */
export interface PolicyFacts {
  readonly issuers: readonly { readonly issuer: string; readonly accounts: readonly string[] }[];
  readonly routes: readonly {
    readonly path: string;
    readonly roles?: readonly string[] | undefined;
    readonly scopes?: readonly string[] | undefined;
  }[];
  readonly roles: PermissionTable;
  readonly scopes?: PermissionTable | undefined;
}

const maxRows = 30;
const maxPathLength = 200;
const maxNameLength = 64;

export function renderRoutes({ routes }: PolicyFacts): Html {
  const shown = (names: readonly string[] | undefined): Html => (names === undefined ? html`all` : codes(names));
  const row = ({ path, roles, scopes }: PolicyFacts['routes'][number]): Html =>
    html`<tr><th scope="row"><code>${printable(path, maxPathLength)}</code></th><td>${shown(roles)}</td><td>${shown(scopes)}</td></tr>\n`;
  return html`<table><thead><tr><th scope="col">Path</th><th scope="col">Roles</th><th scope="col">Scopes</th></tr></thead>
<tbody>${routes.slice(0, maxRows).map(row)}</tbody></table>${more(routes.length)}`;
}

/** The methods of each role or scope. */
export function renderPermissions(permissions: PermissionTable | undefined): Html {
  if (permissions === undefined) return html`<p>None are configured: the claim is not looked at.</p>`;
  const rows = [...permissions];
  const shown = rows
    .slice(0, maxRows)
    .map(([name, methods]) => [printable(name, maxNameLength), codes(methods)] as const);
  return html`${pairList(shown)}${more(rows.length)}`;
}

function more(count: number): Html {
  return count > maxRows ? html`<p class="muted">and ${formatCount(count - maxRows)} more</p>` : html``;
}
