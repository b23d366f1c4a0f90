// What the answers to Envoy take from a configuration.

import type { Config } from '../config/schema.ts';
import { createIdentityHeaders, underscoreSpellings } from '../envoy/identity-headers.ts';
import type { ResponseSettings } from '../envoy/response.ts';
import { hostOverrideHeaders } from '../envoy-config/headers.ts';
import { resourceMetadataUrl } from '../text/resource-metadata.ts';

export function toResponseSettings({ identityHeaders, token, account, protectedResource }: Config): ResponseSettings {
  // Where the host was checked, an upstream must not read another one from a header of the client.
  const removed = account.hosts === undefined ? [] : hostOverrideHeaders;
  return {
    identityHeaders: createIdentityHeaders(identityHeaders),
    forward: token.forward,
    removedHeaders: removed.flatMap(name => [name, ...underscoreSpellings(name)]),
    resourceMetadata: protectedResource && resourceMetadataUrl(protectedResource.resource),
  };
}
