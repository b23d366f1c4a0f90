// The log: JSON lines on standard output, one for each check. No token, no header, no query string; foreign text bounded and escaped.
import { type DestinationStream, type Logger, pino } from 'pino';
import type { CheckRecord } from './check-record.ts';

export type { Logger } from 'pino';

export interface LogSettings {
  readonly level: string;
  /** Whether an allow has a line. */
  readonly allowed: boolean;
}

export function createLogger(settings: LogSettings, destination: DestinationStream): Logger {
  return pino(
    {
      level: settings.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: label => ({ level: label }) },
    },
    destination,
  );
}

/** Writes the decision line of a check. */
export function logCheck(logger: Logger, settings: LogSettings, record: CheckRecord): void {
  if (record.decision === 'allow' && !settings.allowed) return;
  const { requestId, decision, reason, detail, method, route, principal, kid, cache, durationMs, traceId } = record;
  const line = {
    requestId,
    decision,
    reason,
    detail,
    method: bounded(method),
    route,
    uid: principal?.uid,
    app: principal?.app,
    acc: principal?.acc,
    role: principal?.role,
    iss: principal?.iss,
    kid: kid === undefined ? undefined : bounded(kid),
    cache,
    durationMs: Math.round(durationMs * 1000) / 1000,
    traceId,
  };
  if (decision === 'unavailable') logger.warn(line, 'check');
  else logger.info(line, 'check');
}

/** What is safe to keep of an error: its name, code and where it came from, never its message, which may quote its input. */
export function describeFault(error: unknown): { readonly name: string; readonly code?: string; readonly at?: string } {
  if (!(error instanceof Error)) return { name: typeof error };
  const at = error.stack
    ?.split('\n')
    .find(line => line.startsWith('    at '))
    ?.trim();
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  return { name: error.name, ...(code === undefined ? {} : { code }), ...(at === undefined ? {} : { at }) };
}

const maxForeignLength = 64;

/** Printable ASCII of bounded length: a terminal that shows the line obeys none of it (CVE-2024-45808 is the lesson). */
export function bounded(text: string): string {
  const cut = text.length > maxForeignLength ? `${text.slice(0, maxForeignLength)}…` : text;
  return cut.replace(/[^\x20-\x7e\u2026]/g, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
