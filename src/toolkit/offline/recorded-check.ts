// Makes checks as the server does, and returns each answer with its log record. Serves, logs and writes nothing.
import { type CheckRecord, createCheck } from '../../check/check.ts';
import { createEngine } from '../../check/engine.ts';
import { toResponseSettings } from '../../check/response-settings.ts';
import type { Config } from '../../config/schema.ts';
import { createAnswers } from '../../envoy/answers.ts';
import { readRequestFacts } from '../../envoy/request.ts';
import type { ListUnavailable } from '../../revocation/fetched-list.ts';
import type { RevocationList } from '../../revocation/revocation-list.ts';
import { describeFault } from '../../text/problem.ts';
import type { IssuerKeys } from '../../token/verifier.ts';

interface RecordedCheck {
  /** The serialized CheckResponse. */
  readonly response: Buffer;
  readonly record: CheckRecord;
  /** Describes an internal error, which the answer does not tell. */
  readonly fault: string | undefined;
}

/** Checks one serialized CheckRequest at a time, at a wall time in seconds since the epoch. */
type MakeRecordedCheck = (request: Buffer, now: number) => Promise<RecordedCheck>;

export interface RecordedCheckOptions {
  readonly config: Config;
  /** By `iss`. */
  readonly keyRings: ReadonlyMap<string, IssuerKeys>;
  readonly revocations: RevocationList | ListUnavailable | undefined;
}

export function createRecordedCheck({ config, keyRings, revocations }: RecordedCheckOptions): MakeRecordedCheck {
  let time = 0;
  let record: CheckRecord | undefined;
  let fault: string | undefined;
  const engine = createEngine({ config, keyRings, revocations: () => revocations, now: () => time });
  const answers = createAnswers(toResponseSettings(config));
  const check = createCheck({
    current: () => ({ engine, answers }),
    record: made => {
      record = made;
    },
    onFault: error => {
      const { name, code, at } = describeFault(error);
      fault = [name, code, at].filter(part => part !== undefined).join(' ');
    },
    monotonicNow: () => performance.now(),
  });
  return async (request, now) => {
    time = now;
    record = undefined;
    fault = undefined;
    const response = await check(readRequestFacts(request));
    if (record === undefined) throw new Error('a check without a record');
    return { response, record, fault };
  };
}
