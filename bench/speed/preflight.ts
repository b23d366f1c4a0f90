// Before anything is timed: whoever does the work must give the right answer to each kind of request, and whoever does nothing must
// answer what the product answers. A wrong contender ends the bench.
import { isDeepStrictEqual } from 'node:util';
import type { WireRequest } from '../load/wire-client.ts';
import { decodeAnswer, headerOf, httpStatusOf } from './check-response.ts';
import type { Contender, RunningContender } from './contender.ts';
import { knownToken } from './request-sets.ts';
import { checkCall, checkCallBlocks } from './requests.ts';
import { ask } from './server-process.ts';
import type { BenchToken, Tokens } from './tokens.ts';

export interface PreflightCase {
  readonly name: string;
  readonly request: WireRequest;
  readonly status: number;
}

export async function preflightCases(tokens: Tokens): Promise<readonly PreflightCase[]> {
  const known = await knownToken(tokens);
  const first = (of: readonly BenchToken[]): BenchToken => of[0] ?? known;
  return [
    { name: 'a good token', request: checkCall(known), status: 200 },
    { name: 'the same token again', request: checkCall(known), status: 200 },
    { name: 'another account', request: checkCall(known, { account: 'acct-other1' }), status: 403 },
    { name: 'a forged signature', request: checkCall(first(tokens.forged(1))), status: 401 },
    { name: 'an expired token', request: checkCall(await tokens.expired()), status: 401 },
    { name: 'another audience', request: checkCall(await tokens.foreignAudience()), status: 401 },
    { name: 'no token at all', request: checkCall(first(tokens.garbage(1))), status: 401 },
  ];
}

export async function preflight(
  contender: Contender,
  running: RunningContender,
  cases: readonly PreflightCase[],
  allow: Buffer,
  account: string,
): Promise<void> {
  const target = { port: running.port };
  for (const { name, request, status } of contender.family === 'floor' ? cases.slice(0, 1) : cases) {
    const { message } = await ask({ target, shared: checkCallBlocks, request });
    const problem =
      message === undefined ? 'no message' : problemOf(contender, message.subarray(5), status, allow, account);
    if (problem !== undefined) throw new Error(`${contender.name} answers ${name} wrongly: ${problem}`);
  }
}

/** undefined where the answer is right. */
export function problemOf(
  { family }: Pick<Contender, 'family'>,
  bytes: Buffer,
  status: number,
  allow: Buffer,
  account: string,
): string | undefined {
  const answer = decodeAnswer(bytes);
  // Go writes a map in any order and leaves out what is a default, so the same message may have other bytes.
  if (family === 'floor')
    return isDeepStrictEqual(answer, decodeAnswer(allow)) ? undefined : 'not the message of the product';
  const answered = httpStatusOf(answer);
  if (answered !== status) return `${answered} instead of ${status}`;
  if (status !== 200) return undefined;
  const named = headerOf(answer, 'x-auth-acc');
  return named === account ? undefined : `x-auth-acc is ${named ?? 'missing'}`;
}
