// Builds the request sets of the contenders from the tokens of a run.
import type { RequestSet } from '../load/wire-load.ts';
import type { SetName } from './contender.ts';
import { checkCall } from './requests.ts';
import type { BenchToken, Tokens } from './tokens.ts';

export const rotationTokens = 10_000;
const refusedTokens = 2000;

/** `newTokens`: more than the cache holds, so that each one is evicted before its turn comes again. */
export async function makeRequestSet(name: SetName, tokens: Tokens, newTokens: number): Promise<RequestSet> {
  const cycle = (expected: RequestSet['expected'], requests: RequestSet['requests']): RequestSet => ({
    expected,
    requests,
    once: false,
  });
  switch (name) {
    case 'known':
      return cycle('allow', [checkCall(await knownToken(tokens))]);
    case 'rotation':
      return cycle(
        'allow',
        (await tokens.good(0, rotationTokens)).map(token => checkCall(token)),
      );
    case 'new':
      return cycle(
        'allow',
        (await tokens.good(rotationTokens, newTokens)).map(token => checkCall(token)),
      );
    case 'garbage':
      return cycle(
        'deny',
        tokens.garbage(refusedTokens).map(token => checkCall(token)),
      );
    case 'forged':
      return cycle(
        'deny',
        tokens.forged(refusedTokens).map(token => checkCall(token)),
      );
  }
}

/** The token of the first request to every started process. */
export async function knownToken(tokens: Tokens): Promise<BenchToken> {
  const [token] = await tokens.good(0, 1);
  if (token === undefined) throw new Error('no token was made');
  return token;
}
