// A request before it is encoded, and the context of a change to it.
import type { CheckMessage, HttpAttributes } from '../oracle/message.ts';
import type { Row } from './changes.ts';
import type { Random } from './random.ts';
import type { Setup } from './setup.ts';
import type { GeneratedToken } from './token-draft.ts';

/** A request before it is encoded. */
export interface RequestDraft {
  method: string;
  path: string;
  host: string;
  /** As Envoy shows the one of the client; empty without one. */
  readonly certificate: string;
  /** Without the question mark; undefined: no query. */
  query: string | undefined;
  /** One value per header line. */
  readonly lines: [name: string, value: string][];
  /** A change to the finished message. */
  readonly finish: ((message: CheckMessage) => CheckMessage)[];
}

export interface RequestContext {
  readonly random: Random;
  readonly setup: Setup;
  readonly token: GeneratedToken;
}

type Change = (draft: RequestDraft, context: RequestContext) => void;
export type RequestRow = Row<Change>;

export function row(weight: number, name: string, change: Change): RequestRow {
  return [weight, name, change];
}

/** The message with its HTTP attributes changed. */
export function withHttp(message: CheckMessage, change: (http: HttpAttributes) => HttpAttributes): CheckMessage {
  const http = message.attributes?.request?.http ?? undefined;
  if (http === undefined) return message;
  return { attributes: { ...message.attributes, context_extensions: {}, request: { http: change(http) } } };
}

/** Removes a header line, whatever its case. */
export function drop(draft: RequestDraft, name: string): void {
  for (let i = draft.lines.length - 1; i >= 0; i -= 1)
    if (draft.lines[i]?.[0].toLowerCase() === name) draft.lines.splice(i, 1);
}
