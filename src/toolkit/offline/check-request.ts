// Encodes a request as the CheckRequest that Envoy would send for it.
import { toTokenLines } from '../../authz/token-places.ts';
import type { Config } from '../../config/schema.ts';
import { authorizationService, type CheckRequestMessage } from '../../envoy/protocol.ts';

export interface SimulatedRequest {
  readonly method: string;
  readonly target: string;
  /** Lower-case names, a line each, without Authorization. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** That of the client, in PEM. */
  readonly certificate?: string | undefined;
}

export interface SentRequest {
  readonly request: SimulatedRequest;
  /** Value of the Authorization header, one character for each byte; undefined: the request has none. */
  readonly authorization: string | undefined;
}

const { Check } = authorizationService;

type Line = readonly [name: string, value: string];

/** The header lines that carry the token in the first place of `token.from`; of the handshake that a subprotocol needs, those that are not there. */
export function tokenLines(
  { from: [first], origins = [] }: Pick<Config['token'], 'from' | 'origins'>,
  authorization: string,
  headers: readonly Line[],
): readonly Line[] {
  if (first === 'authorization') return [['authorization', authorization]];
  const [line, ...handshake] = toTokenLines(first, authorization.replace(/^bearer +/i, '')).toReversed();
  if (line === undefined || handshake.length === 0) return line === undefined ? [] : [line];
  const page = origins.slice(0, 1).map((origin): Line => ['origin', origin]);
  return [...[...handshake, ...page].filter(([name]) => !headers.some(([sent]) => sent === name)), line];
}

/** With `encode_raw_headers`, as envoy.yaml sets it: the bytes of each header line. */
export function toCheckRequest(
  { request, authorization }: SentRequest,
  token: Pick<Config['token'], 'from' | 'origins'>,
): Buffer {
  const { method, target, headers, certificate } = request;
  // Envoy shows the host of a request as `:authority`, whatever the version of HTTP.
  const shown = headers.map(([name, value]) => [name === 'host' ? ':authority' : name, value]);
  const lines = [[':path', target], [':method', method], ...shown].map(([key = '', value = '']) => ({
    key,
    value: '',
    raw_value: Buffer.from(value),
  }));
  if (authorization !== undefined) {
    for (const [key, value] of tokenLines(token, authorization, headers))
      lines.push({ key, value: '', raw_value: Buffer.from(value, 'latin1') });
  }
  const http = {
    method,
    path: target,
    host: headers.find(([name]) => name === 'host')?.[1] ?? '',
    scheme: '',
    protocol: '',
    query: '',
    fragment: '',
    headers: {},
    header_map: { headers: lines },
  };
  // Envoy percent-encodes it.
  const source = certificate === undefined ? undefined : { certificate: encodeURIComponent(certificate) };
  const message: CheckRequestMessage = {
    attributes: { ...(source && { source }), request: { http }, context_extensions: {} },
  };
  return Check.requestSerialize(message);
}

/** RFC 9110 section 5.6.2. */
export function isHeaderName(text: string): boolean {
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(text);
}

/** RFC 9110 section 5.5: no control characters but the tab. */
export function isHeaderValue(text: string): boolean {
  return /^[\t -~\u0080-\uffff]*$/.test(text);
}
