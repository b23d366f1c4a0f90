// Rules over several fields of the configuration. They run even if a field is invalid: they take an unknown value and skip what
// another rule reports.
import type * as z from 'zod';
import { parseHostEntry } from '../authz/places/host-place.ts';
import { defaultAccountParameter, parameterGrammar } from '../authz/route-template.ts';
import { identityPrefixProblem } from '../envoy-config/headers.ts';
import { isJsonObject, itemsOf, memberOf } from '../json/strict-json.ts';
import { keyUrlProblem } from '../text/key-url.ts';
import { isLoopback, isSameListener, parseListenAddress } from '../text/listen-address.ts';
import { resourceProblem } from '../text/resource-metadata.ts';
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
  const named = clientCertificateKeys.filter(key => memberOf(issuer, key) !== undefined);
  const [missing] = clientCertificateKeys.filter(key => !named.includes(key));
  for (const key of named) if (missing !== undefined) report(context, `must be set together with ${missing}`, [key]);
}

export function refuseConnectionOfFile(issuer: unknown, context: z.RefinementCtx): void {
  if (memberOf(issuer, 'jwksFile') === undefined) return;
  for (const key of [...clientCertificateKeys, 'bearerTokenFile']) {
    if (memberOf(issuer, key) !== undefined)
      report(context, 'must not be set together with jwksFile: a file is read without a connection', [key]);
  }
}

export function requireAllowedHttp(issuer: unknown, context: z.RefinementCtx): void {
  if (memberOf(issuer, 'allowHttp') === true) return;
  for (const key of ['jwksUrl', 'discoveryUrl']) {
    const url = memberOf(issuer, key);
    if (typeof url === 'string' && keyUrlProblem(url, true) === undefined) report(context, keyUrlProblem(url), [key]);
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
  const listen = addressOf(memberOf(config, 'listen'));
  const admin = addressOf(memberOf(config, 'admin'));
  const isPlain = memberOf(config, 'tls') === undefined && memberOf(config, 'listenInsecure') === false;
  if (listen?.kind === 'tcp' && !isLoopback(listen.host) && isPlain) {
    const remedy = 'set tls, listen on loopback or a Unix socket, or set listenInsecure: true';
    report(context, `must not accept calls from other machines without TLS: ${remedy}`, ['listen']);
  }
  if (listen !== undefined && admin !== undefined && isSameListener(listen, admin)) {
    report(context, 'must not overlap with listen: use another port', ['admin']);
  }
}

/** The parameter that is the account, where it is valid; the default otherwise. */
export function accountParameterOf(account: unknown): string {
  const parameter = memberOf(account, 'parameter');
  return typeof parameter === 'string' && parameterGrammar.test(parameter) ? parameter : defaultAccountParameter;
}

export function requireHosts(account: unknown, context: z.RefinementCtx): void {
  for (const [i, host] of itemsOf(memberOf(account, 'hosts')).entries()) {
    if (typeof host !== 'string') continue;
    const entry = parseHostEntry(host, accountParameterOf(account));
    if (entry.kind === 'problem') report(context, entry.problem, ['hosts', i]);
  }
}

export function requireResourceAmongHosts(config: unknown, context: z.RefinementCtx): void {
  const resource = memberOf(memberOf(config, 'protectedResource'), 'resource');
  const account = memberOf(config, 'account');
  const hosts = memberOf(account, 'hosts');
  if (typeof resource !== 'string' || resourceProblem(resource) !== undefined || !Array.isArray(hosts)) return;
  const parameter = accountParameterOf(account);
  const entries = itemsOf(hosts).flatMap(host => (typeof host === 'string' ? [parseHostEntry(host, parameter)] : []));
  const { hostname } = new URL(resource);
  if (entries.some(entry => entry.kind === 'literal' && entry.host === hostname)) return;
  const message = 'must have a host that account.hosts has without the account: clients fetch its metadata from there';
  report(context, message, ['protectedResource', 'resource']);
}

export function requireAccountHeadersOutsidePrefix(config: unknown, context: z.RefinementCtx): void {
  const prefix = memberOf(config, 'identityHeaders');
  if (typeof prefix !== 'string' || identityPrefixProblem(prefix) !== undefined) return;
  for (const [i, header] of itemsOf(memberOf(memberOf(config, 'account'), 'headers')).entries()) {
    if (typeof header !== 'string' || !header.toLowerCase().startsWith(prefix)) continue;
    report(context, 'must not start with the prefix of identityHeaders: such headers are removed from requests', [
      'account',
      'headers',
      i,
    ]);
  }
}

function requireAtLeast(keys: unknown, larger: string, smaller: string, context: z.RefinementCtx): void {
  const [most, least] = [memberOf(keys, larger), memberOf(keys, smaller)];
  if (typeof most !== 'number' || typeof least !== 'number' || !(most < least)) return;
  report(context, `must be at least ${smaller} (${least})`, [larger]);
}

function addressOf(value: unknown) {
  if (typeof value !== 'string') return undefined;
  const address = parseListenAddress(value);
  return address.kind === 'problem' ? undefined : address;
}
