// What the answers to Envoy take from a configuration.
import type { Config } from '../config/schema.ts';
import type { ResponseSettings } from '../envoy/response.ts';
import { createIdentityHeaders, removedByAllow, toHeaderRules } from '../headers/headers.ts';
import { resourceMetadataUrl } from '../text/url.ts';

export function toResponseSettings(config: Config): ResponseSettings {
  const { identityHeaders, forwardClaims, protectedResource } = config;
  return {
    identityHeaders: createIdentityHeaders(identityHeaders, forwardClaims),
    removedHeaders: removedByAllow(toHeaderRules(config, 0)),
    resourceMetadata: protectedResource && resourceMetadataUrl(protectedResource.resource),
  };
}
