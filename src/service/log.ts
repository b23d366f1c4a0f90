// The log: one JSON line per check on standard output. No token, header or query string; foreign text is bounded and escaped.
import { type DestinationStream, type Logger, pino } from 'pino';
import type { CheckRecord } from '../check/check.ts';
import { parseTraceParent } from '../check/trace-context.ts';
import { printable, printableMembers } from '../text/printable.ts';

export type { Logger } from 'pino';

interface LogSettings {
  readonly level: string;
  /** Whether an allow has a line. */
  readonly allowed: boolean;
}

/** An issuer may be as long. */
const maxTextLength = 1024;

export function createLogger(settings: LogSettings, destination: DestinationStream): Logger {
  return pino(
    {
      level: settings.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: label => ({ level: label }), log: line => printableMembers(line, maxTextLength) },
    },
    destination,
  );
}

/** Writes the decision line of a check. */
export function logCheck(logger: Logger, settings: LogSettings, record: CheckRecord): void {
  if (record.decision === 'allow' && !settings.allowed) return;
  const { requestId, decision, reason, detail, found, method, route, principal, kid, cache, durationMs, traceparent } =
    record;
  const line = {
    requestId,
    decision,
    reason,
    detail: found === undefined ? detail : `${detail}: ${found}`,
    method: printable(method),
    route,
    ...principal,
    kid: kid === undefined ? undefined : printable(kid),
    cache,
    durationMs: Math.round(durationMs * 1000) / 1000,
    traceId: parseTraceParent(traceparent)?.traceId,
  };
  if (decision === 'unavailable') logger.warn(line, 'check');
  else logger.info(line, 'check');
}
