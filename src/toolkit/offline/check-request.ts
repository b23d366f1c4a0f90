// Encodes a request as the CheckRequest that Envoy would send for it.
import { toTokenLine } from '../../authz/token-places.ts';
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

/** The header line that carries the token in the first place of `token.from`. */
export function tokenLine(
  [first]: Config['token']['from'],
  authorization: string,
): readonly [name: string, value: string] {
  if (first === 'authorization') return ['authorization', authorization];
  return toTokenLine(first, authorization.replace(/^bearer +/i, ''));
}

/** With `encode_raw_headers`, as envoy.yaml sets it: the bytes of each header line. */
export function toCheckRequest({ request, authorization }: SentRequest, from: Config['token']['from']): Buffer {
  const { method, target, headers, certificate } = request;
  // Envoy shows the host of a request as `:authority`, whatever the version of HTTP.
  const shown = headers.map(([name, value]) => [name === 'host' ? ':authority' : name, value]);
  const lines = [[':path', target], [':method', method], ...shown].map(([key = '', value = '']) => ({
    key,
    value: '',
    raw_value: Buffer.from(value),
  }));
  if (authorization !== undefined) {
    const [key, value] = tokenLine(from, authorization);
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
