// No generated target that account-authz allows reaches the account of somebody else at any upstream.
import { expect } from 'chai';
import { checkRequest } from '../../../lab/check-request.ts';
import { token } from '../../../lab/token.ts';
import { authorizationService } from '../../../src/envoy/protocol.ts';
import { createWholeCheck, statusOf } from '../../support/whole-check.ts';
import { createRandom } from '../generator/random.ts';
import { accounts, generateTarget, type Layout, layouts } from './targets.ts';
import { accountParameter, createUpstreams } from './upstreams.ts';

const seed = Number(process.env.PATHS_SEED ?? 1);
const targets = Number(process.env.FUZZ_RUNS ?? 3000);

describe(`${targets} generated targets of seed ${seed}`, () => {
  for (const layout of layouts) {
    it(`are refused if an upstream serves another account than the token’s: ${layout.name}`, async () => {
      const allows = await createAllows(layout);
      const upstreams = createUpstreams(layout);
      const counts = { allowed: 0, allowedThoughChanged: 0, served: 0, attacksRefused: 0 };
      const differences: unknown[] = [];
      for (let number = 0; number < targets; number += 1) {
        const { text, account, isChanged } = generateTarget(createRandom(seed, number), layout);
        const served = Array.from(upstreams, ([upstream, serve]) => ({ upstream, accounts: serve(text) }));
        const wrong = served.filter(each => each.accounts.some(other => other !== account));
        if (!(await allows(text, account))) {
          if (wrong.length > 0) counts.attacksRefused += 1;
          continue;
        }
        counts.allowed += 1;
        if (isChanged) counts.allowedThoughChanged += 1;
        if (served.some(each => each.accounts.length > 0)) counts.served += 1;
        if (wrong.length > 0) differences.push({ number, text, account, wrong });
      }
      expect(differences.slice(0, 10)).to.deep.equal([]);
      const told = JSON.stringify(counts);
      expect(counts.allowed / targets, told).to.be.above(0.1);
      expect(counts.allowedThoughChanged / counts.allowed, told).to.be.above(0.3);
      expect(counts.served / counts.allowed, told).to.be.above(0.3);
      expect(counts.attacksRefused / targets, told).to.be.above(0.04);
    });
  }
});

/** Whether a request for this target is allowed with a valid token of this account. */
async function createAllows({ templates, narrowed = [], wide = [] }: Layout) {
  const check = await createWholeCheck({
    routes: templates.map(path => ({
      path,
      ...(narrowed.includes(path) ? { roles: ['nobody'] } : {}),
      ...(wide.includes(path) ? { characters: 'rfc3986' } : {}),
      ...(/\/:(?!account_id)/.test(path) && !path.includes(':account_id') ? { accountInPath: false } : {}),
    })),
    account: { query: [accountParameter] },
    roles: { owner: ['*'], nobody: ['GET'] },
    cache: { maxTokens: accounts.length },
  });
  const tokens = new Map<string, string>();
  for (const acc of accounts) tokens.set(acc, await token({ claims: { acc } }));
  return async (path: string, account: string): Promise<boolean> => {
    const message = checkRequest({ path, headers: { authorization: `Bearer ${tokens.get(account)}` } });
    return statusOf(await check(Buffer.from(authorizationService.Check.requestSerialize(message)))) === 0;
  };
}
