// The product as a reader of targets: whether a request with a valid token of the account is allowed, everything else being valid.
import { checkRequest } from '../../../lab/check-request.ts';
import { baseTime } from '../generator/identities.ts';
import { keyPairs, publishedKey } from '../generator/key-pairs.ts';
import { createDraft, type Member, tokenText } from '../generator/token-draft.ts';
import { isAllow } from '../oracle/answer.ts';
import { startProduct } from '../product.ts';
import { readAnswer, requestBytes } from '../wire.ts';
import { type Allows, type Layout, targetAccounts } from './path-comparison.ts';
import { accountParameter } from './upstreams.ts';

const issuer = 'https://idp.test';
const audience = 'api';

export async function startProductReader({
  templates,
  narrowed = [],
  wide = [],
}: Layout): Promise<{ readonly allows: Allows; stop(): Promise<void> }> {
  const [pair] = keyPairs().published;
  if (pair === undefined) throw new Error('no key');
  const kid = 'k1';
  const written = {
    issuers: [{ issuer, audiences: [audience] }],
    routes: templates.map(path => ({
      path,
      ...(narrowed.includes(path) ? { roles: ['nobody'] } : {}),
      ...(wide.includes(path) ? { characters: 'rfc3986' as const } : {}),
      ...(path.includes('/:') && !path.includes(`/:${accountParameter}`) ? { accountInPath: false as const } : {}),
    })),
    account: { query: [accountParameter] },
    roles: { owner: ['*'], nobody: ['GET'] },
  };
  const keys = new Map([[issuer, { state: 'usable' as const, published: [publishedKey(pair, { kid })] }]]);
  const product = await startProduct(written, keys);
  const tokens = new Map(
    targetAccounts.map(acc => {
      const claims = {
        iss: issuer,
        aud: audience,
        exp: baseTime + 600,
        iat: baseTime,
        uid: 'u-1',
        app: 'web',
        role: 'owner',
        acc,
      };
      const draft = createDraft(members({ alg: 'ES256', typ: 'JWT', kid }), members(claims), {
        kid,
        alg: 'ES256',
        pair,
      });
      return [acc, tokenText(draft)] as const;
    }),
  );
  return {
    async allows(target, account) {
      const headers = { authorization: `Bearer ${tokens.get(account) ?? ''}` };
      const bytes = requestBytes(checkRequest({ path: target, headers }));
      return isAllow(readAnswer(await product.decide(bytes, baseTime)));
    },
    stop: () => product.stop(),
  };
}

function members(values: Readonly<Record<string, unknown>>): Member[] {
  return Object.entries(values).map(([name, value]) => [JSON.stringify(name), JSON.stringify(value)]);
}
