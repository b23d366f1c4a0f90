// How Envoy asks account-authz: times, retries and limits of a check, which every target of `render` needs in its own notation.

export const authzCluster = 'account-authz';

export const authzCall = {
  /** All attempts together: the default of 0.2 s is missed on a cold connection of a busy machine. */
  timeoutMs: 500,
  retries: 2,
  retryOn: ['connect-failure', 'refused-stream', 'reset', 'unavailable'],
  /** Without these the first retry waits up to 1 s. The maximum limits each attempt too. */
  retryBaseMs: 10,
  retryMaxMs: 250,
  maxAnswerBytes: 65_536,
  maxBodyBytes: 4096,
  /** Well under the timeout: a dead host must not use it up. With a handshake of TLS it takes longer. */
  connectMs: 100,
  tlsConnectMs: 200,
  keepalive: { intervalS: 30, timeoutS: 5, idleS: 10 },
  /** An overflow is a failed check. Of retries the default is 3, which loses the retry policy under load. */
  maxConnections: 1024,
  maxRequests: 4096,
  maxRetries: 1024,
  /**
   * A client that goes away during its check resets a stream. nghttp2 ends a connection after 1,000 resets and then 33 a second, with the
   * checks of others on it; a connection with fewer checks never has so many.
   */
  maxChecksPerConnection: 900,
} as const;

/** A duration in protobuf JSON: `0.5s`. */
export function seconds(ms: number): string {
  return `${ms / 1000}s`;
}
