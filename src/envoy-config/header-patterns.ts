// Patterns (RE2) for the header names that Envoy shows to account-authz, removes, and lets it change.
import { hostOverrideHeaders, methodOverrideHeaders, pathOverrideHeaders } from './headers.ts';
import type { EnvoyPolicy } from './settings.ts';

/** Headers that the ext_authz filter sets, so that a client must not. */
export const setByExtAuthz = ['x-envoy-auth-partial-body', 'x-envoy-auth-failure-mode-allowed'] as const;

/** The name with whatever sign in place of each hyphen. */
export function anySpelling(name: string): string {
  return name.replaceAll('-', '[^a-z0-9]');
}

/** The headers by which an upstream would act on another request than the checked one, in any spelling. Without `hosts` any host is good. */
export function overridePatterns({ hosts }: EnvoyPolicy): readonly string[] {
  const hostOverrides = hosts === undefined ? [] : [hostOverrideHeaders];
  return [pathOverrideHeaders, methodOverrideHeaders, ...hostOverrides].map(names => names.map(anySpelling).join('|'));
}

/** Every name under the identity prefix, in any spelling. */
export function ownedPattern(prefix: string): string {
  return `${anySpelling(prefix)}.*`;
}

/** The names that an answer of account-authz may set or remove. */
export function mutablePattern({ identityPrefix, forwardsToken, hosts }: EnvoyPolicy): string {
  const names = [
    `${identityPrefix}.*`,
    ...(forwardsToken ? [] : ['authorization']),
    ...(hosts === undefined ? [] : hostOverrideHeaders),
  ].map(name => name.replaceAll('-', '[-_]'));
  return names.length === 1 ? `^${names.join('')}$` : `^(${names.join('|')})$`;
}
