// The part of oidc-provider (which ships no types) that the authentication service uses.
declare module 'oidc-provider/lib/provider.js' {
  import type { IncomingMessage, ServerResponse } from 'node:http';

  export interface StoredPayload {
    readonly uid?: string;
    readonly grantId?: string;
    readonly consumed?: number;
  }

  export interface ResourceServerInfo {
    readonly scope: string;
    readonly audience: string;
    readonly accessTokenFormat: 'jwt';
    readonly accessTokenTTL: number;
    readonly jwt: { readonly sign: { readonly alg: string } };
  }

  export interface IssuedToken {
    readonly accountId?: string;
    readonly clientId: string;
    readonly extra?: { readonly acc: string };
  }

  interface AccessToken {
    resourceServer: object;
    /** Handed to `extraTokenClaims`, whose answer takes its place. */
    extra: { readonly acc: string };
    scope: string;
    save(): Promise<string>;
  }

  interface Grant {
    addOIDCScope(scope: string): void;
    addResourceScope(resource: string, scope: string): void;
    save(): Promise<string>;
  }

  interface Interaction {
    readonly params: { readonly client_id: string };
  }

  export class Provider {
    constructor(issuer: string, configuration: Readonly<Record<string, unknown>>);
    callback(): (request: IncomingMessage, response: ServerResponse) => Promise<void>;
    interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<Interaction>;
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>;
    readonly Client: { find(clientId: string): Promise<object | undefined> };
    readonly AccessToken: new (
      values: object,
    ) => AccessToken;
    readonly ResourceServer: new (
      identifier: string,
      info: ResourceServerInfo,
    ) => object;
    readonly Grant: new (
      values: object,
    ) => Grant;
  }
}

declare module 'oidc-provider/lib/helpers/errors.js' {
  export class OIDCProviderError extends Error {
    readonly status: number;
  }
}
