// An MCP client: the SDK's own, with a user's browser simulated, and a fetch that trusts one more authority and tells what it did.
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { Readable } from 'node:stream';
import {
  Client,
  type FetchLike,
  type OAuthClientInformationMixed,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type OAuthTokens,
  StreamableHTTPClientTransport,
  UnauthorizedError,
  type VersionNegotiationMode,
} from '@modelcontextprotocol/client';
import { jsonOf } from '../../demo/http-client.ts';
import { followAsBrowser, signIn } from '../../demo/oauth-client.ts';

/** One request of the client and its answer. */
export interface Exchange {
  readonly method: string;
  readonly url: string;
  readonly status: number;
  /** The headers by which MCP 2026-07-28 names the message: `tools/call list_subscriptions`. */
  readonly named: string;
}

export type McpClient = ReturnType<typeof createMcpClient>;

// Nothing listens there: the simulated browser reads the redirect and does not follow it.
const redirectUrl = 'http://127.0.0.1/callback';

/** `accessToken`: one that the client already has; `mode`: the era of the protocol. */
export function createMcpClient(
  url: URL,
  fetchTrusting: FetchLike,
  { accessToken, mode = 'legacy' }: { readonly accessToken?: string; readonly mode?: VersionNegotiationMode } = {},
) {
  const exchanges: Exchange[] = [];
  const recordingFetch: FetchLike = async (target, init) => {
    const response = await fetchTrusting(target, init);
    const headers = new Headers(init?.headers);
    exchanges.push({
      method: init?.method ?? 'GET',
      url: String(target),
      status: response.status,
      named: ['mcp-method', 'mcp-name'].flatMap(name => headers.get(name) ?? []).join(' '),
    });
    return response;
  };
  const memory = createMemory(accessToken);
  // A transport connects once.
  const open = () => ({
    client: new Client({ name: 'agent', version: '1.0.0' }, { versionNegotiation: { mode } }),
    transport: new StreamableHTTPClientTransport(url, { authProvider: memory.provider, fetch: recordingFetch }),
  });
  let { client, transport } = open();
  return {
    exchanges,
    get authorizationUrl() {
      return memory.authorizationUrl();
    },
    /** Resolves with `sign-in` if the user has to sign in first. */
    async connect(): Promise<'connected' | 'sign-in'> {
      try {
        await client.connect(transport);
        return 'connected';
      } catch (error) {
        if (error instanceof UnauthorizedError) return 'sign-in';
        throw error;
      }
    },
    /** The user signs in and consents in a browser; then the SDK exchanges the code for a token, and connects. */
    async signInAndConnect(user: string, password: string) {
      const request = memory.authorizationUrl();
      if (request === undefined) throw new Error('the SDK has not asked for a sign-in');
      const session = String(jsonOf(await signIn(request.origin, user, password)).session_token);
      const { location = '' } = (await followAsBrowser(request, session)).headers;
      await transport.finishAuth(new URL(location, request).searchParams);
      ({ client, transport } = open());
      await client.connect(transport);
    },
    /** The text that the tool answers. */
    async callTool(name: string) {
      const { content } = await client.callTool({ name });
      const [first] = content;
      return first?.type === 'text' ? first.text : '';
    },
    close: () => client.close(),
  };
}

/** What the SDK asks an application to remember. */
function createMemory(accessToken: string | undefined) {
  let information: OAuthClientInformationMixed | undefined;
  let tokens: OAuthTokens | undefined =
    accessToken === undefined ? undefined : { access_token: accessToken, token_type: 'Bearer' };
  let verifier = '';
  let discovery: OAuthDiscoveryState | undefined;
  let authorizationUrl: URL | undefined;
  const provider: OAuthClientProvider = {
    redirectUrl,
    clientMetadata: {
      client_name: 'agent',
      redirect_uris: [redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    },
    clientInformation: () => information,
    saveClientInformation(registered) {
      information = registered;
    },
    tokens: () => tokens,
    saveTokens(issued) {
      tokens = issued;
    },
    redirectToAuthorization(url) {
      authorizationUrl = url;
    },
    saveCodeVerifier(value) {
      verifier = value;
    },
    codeVerifier: () => verifier,
    saveDiscoveryState(state) {
      discovery = state;
    },
    discoveryState: () => discovery,
  };
  return { provider, authorizationUrl: () => authorizationUrl };
}

/** A fetch that trusts the authority `ca` (PEM) for https. The global one reads its authorities only when the process starts. */
export function fetchTrusting(ca: string): FetchLike {
  return async (target, init) => {
    const request = new Request(target, init);
    const body = Buffer.from(await request.arrayBuffer());
    const url = new URL(request.url);
    const { method, signal } = request;
    const options = { method, signal, headers: Object.fromEntries(request.headers), agent: false } as const;
    const call = url.protocol === 'https:' ? httpsRequest(url, { ...options, ca }) : httpRequest(url, options);
    call.end(body);
    const [answer]: IncomingMessage[] = await once(call, 'response');
    if (answer === undefined) throw new Error('no answer');
    const { statusCode: status = 0, headersDistinct } = answer;
    const headers = Object.entries(headersDistinct).flatMap(([name, values = []]) =>
      values.map((value): [string, string] => [name, value]),
    );
    const hasBody = status !== 204 && status !== 304;
    if (!hasBody) answer.resume();
    return new Response(hasBody ? (Readable.toWeb(answer) as ReadableStream<Uint8Array>) : null, { status, headers });
  };
}
