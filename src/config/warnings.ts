// Finds settings that are valid and rarely meant.
import { defaultAccountParameter, toRouteTemplate } from '../authz/route-template.ts';
import { compileRoutes, matchRoutes } from '../authz/route-tree.ts';
import { quotedPrintable } from '../text/printable.ts';
import { compileSource } from '../token/claim-source.ts';
import type { Config, IssuerConfig } from './schema.ts';
import type { PathProblem } from './yaml-document.ts';

/** `revokedIssuers`: each `iss` of the entries of the revocation list. */
export function findWarnings(config: Config, revokedIssuers: Iterable<string>): readonly PathProblem[] {
  return [
    ...config.issuers.flatMap((issuer, i) => issuerWarnings(issuer, i, config.issuers.length > 1)),
    ...routeWarnings(config),
    ...resourceWarnings(config),
    ...revocationWarnings(config, revokedIssuers),
  ];
}

function issuerWarnings(
  { claims, accounts }: IssuerConfig,
  i: number,
  isOneOfSeveral: boolean,
): readonly PathProblem[] {
  const warnings: PathProblem[] = [];
  if (typeof claims.acc === 'object' && !isByAccount(claims.role)) {
    const message =
      'gives the same roles in every account of a token: write {acc} where the account stands, or having, unless the issuer means that';
    warnings.push({ path: ['issuers', i, 'claims', 'role'], message });
  }
  if (isOneOfSeveral && accounts.includes('*')) {
    const message =
      'lets this issuer speak for every account, those of the other issuers too: name its own accounts, or a prefix such as partner-*';
    warnings.push({ path: ['issuers', i, 'accounts'], message });
  }
  return warnings;
}

function isByAccount(role: IssuerConfig['claims']['role']): boolean {
  const { parts, havingAccount } = compileSource(role);
  return havingAccount || parts.length > 1;
}

function routeWarnings({ routes, account: { parameter } }: Config): readonly PathProblem[] {
  const tree = compileRoutes(routes, parameter);
  return routes.flatMap(({ path: text }, i) => {
    const path = ['routes', i, 'path'];
    const { segments, subtree } = toRouteTemplate(text, parameter);
    if (segments.some(each => each.kind === 'any' && each.name === defaultAccountParameter)) {
      return [
        {
          path,
          message: `has :${defaultAccountParameter}, which is not the account: account.parameter is ${parameter}`,
        },
      ];
    }
    if (subtree || !segments.some(({ kind }) => kind === 'account')) return [];
    // Some path under it, whose parameters equal no literal of another template.
    const under = [...segments.map(each => (each.kind === 'literal' ? each.value : sample)), sample];
    const match = matchRoutes(tree, { segments: under, decoded: undefined });
    const isOpen =
      match.kind === 'match' &&
      match.routes.every(route => route.template.segments.every(({ kind }) => kind !== 'account'));
    if (!isOpen) return [];
    const message = `leaves what lies under it to ${quotedPrintable(match.route, 128)}, which compares no account there: end it with /*`;
    return [{ path, message }];
  });
}

const sample = '~any~';

function resourceWarnings({ protectedResource, issuers }: Config): readonly PathProblem[] {
  if (protectedResource === undefined) return [];
  const { resource } = protectedResource;
  if (issuers.some(({ audiences }) => audiences.includes(resource))) return [];
  const message =
    'is not among the audiences of an issuer: a client asks for a token with this audience (RFC 8707), which would be refused';
  return [{ path: ['protectedResource', 'resource'], message }];
}

function revocationWarnings({ issuers }: Config, revokedIssuers: Iterable<string>): readonly PathProblem[] {
  const known = new Set(issuers.map(({ issuer }) => issuer));
  return [...revokedIssuers]
    .filter(issuer => !known.has(issuer))
    .map(issuer => ({
      path: ['revocation', 'file'],
      message: `has an entry whose iss ${quotedPrintable(issuer, 128)} is no issuer of the configuration: it revokes nothing`,
    }));
}
