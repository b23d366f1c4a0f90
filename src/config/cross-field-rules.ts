// Rules over several fields of the configuration. They run even if a field is invalid: they take an unknown value and skip what
// another rule reports.
import type * as z from 'zod';
import { isIdentityField } from '../authz/principal.ts';
import { isJsonObject } from '../json/strict-json.ts';
import { isLoopback, isSameListener, parseListenAddress } from '../text/listen-address.ts';
import { identityPrefixProblem } from './header-names.ts';
import { report } from './value-schemas.ts';

export const keySources = ['jwksUrl', 'discoveryUrl', 'jwksFile'] as const;

export function requireOneKeySource(issuer: unknown, context: z.RefinementCtx): void {
  if (!isJsonObject(issuer)) return;
  const named = keySources.filter(source => Object.hasOwn(issuer, source));
  if (named.length === 1) return;
  const found = named.length === 0 ? 'none' : named.join(' and ');
  report(context, `must set exactly one of ${keySources.join(', ')} (it sets ${found})`);
}

export const clientCertificateKeys = ['clientCertFile', 'clientKeyFile'] as const;

export function requireWholeClientCertificate(issuer: unknown, context: z.RefinementCtx): void {
  if (!isJsonObject(issuer)) return;
  const named = clientCertificateKeys.filter(key => Object.hasOwn(issuer, key));
  const [missing] = clientCertificateKeys.filter(key => !Object.hasOwn(issuer, key));
  for (const key of named) {
    if (missing !== undefined) report(context, `must be set together with ${missing}`, [key]);
    if (Object.hasOwn(issuer, 'jwksFile'))
      report(context, 'must not be set together with jwksFile: a file is read without a connection', [key]);
  }
}

export function requireOrderOfTimes(keys: unknown, context: z.RefinementCtx): void {
  requireAtLeast(keys, 'refreshSeconds', 'cooldownSeconds', context);
  requireAtLeast(keys, 'maxAgeSeconds', 'refreshSeconds', context);
}

export function refuseWildcardAmongOthers(apps: unknown, context: z.RefinementCtx): void {
  if (Array.isArray(apps) && apps.length > 1 && apps.includes('*'))
    report(context, 'must be either "*" alone or app ids without "*"');
}

export function requireSafeListeners(config: unknown, context: z.RefinementCtx): void {
  if (!isJsonObject(config)) return;
  const listen = addressOf(config.listen);
  const admin = addressOf(config.admin);
  const isPlain = config.tls === undefined;
  if (listen?.kind === 'tcp' && !isLoopback(listen.host) && isPlain && config.listenInsecure === false) {
    const remedy = 'set tls, listen on loopback or a Unix socket, or set listenInsecure: true';
    report(context, `must not accept calls from other machines without TLS: ${remedy}`, ['listen']);
  }
  if (listen !== undefined && admin !== undefined && isSameListener(listen, admin)) {
    report(context, 'must not overlap with listen: use another port', ['admin']);
  }
}

export function requireKnownRoles(config: unknown, context: z.RefinementCtx): void {
  if (!isJsonObject(config) || !isJsonObject(config.roles) || !Array.isArray(config.routes)) return;
  for (const [i, route] of config.routes.entries()) {
    if (!isJsonObject(route) || !Array.isArray(route.roles)) continue;
    for (const [j, role] of route.roles.entries()) {
      if (typeof role !== 'string' || !isIdentityField(role) || Object.hasOwn(config.roles, role)) continue;
      report(context, 'must be a role that roles defines: add it to roles, or remove it here', [
        'routes',
        i,
        'roles',
        j,
      ]);
    }
  }
}

export function requireAccountHeadersOutsidePrefix(config: unknown, context: z.RefinementCtx): void {
  if (!isJsonObject(config) || !isJsonObject(config.account)) return;
  const prefix = config.identityHeaders;
  const { headers } = config.account;
  if (typeof prefix !== 'string' || identityPrefixProblem(prefix) !== undefined || !Array.isArray(headers)) return;
  for (const [i, header] of headers.entries()) {
    if (typeof header !== 'string' || !header.toLowerCase().replaceAll('_', '-').startsWith(prefix)) continue;
    report(context, 'must not start with the prefix of identityHeaders: such headers are removed from requests', [
      'account',
      'headers',
      i,
    ]);
  }
}

function requireAtLeast(keys: unknown, larger: string, smaller: string, context: z.RefinementCtx): void {
  if (!isJsonObject(keys)) return;
  const [most, least] = [keys[larger], keys[smaller]];
  if (typeof most !== 'number' || typeof least !== 'number' || !(most < least)) return;
  report(context, `must be at least ${smaller} (${least})`, [larger]);
}

function addressOf(value: unknown) {
  if (typeof value !== 'string') return undefined;
  const address = parseListenAddress(value);
  return address.kind === 'problem' ? undefined : address;
}
