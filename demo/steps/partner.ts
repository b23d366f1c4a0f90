// The section of a partner's issuer, whose tokens are for two accounts, and of an application with few scopes.
import type { Section } from '../run-sections.ts';
import { acme, everyScope, now, type Scene, step, subscriptions } from './scene.ts';

const inBoth = { initech: { roles: ['owner'] }, umbrella: { roles: ['member'] } };
const initech = `${subscriptions}?account_id=initech`;
const umbrella = `${subscriptions}?account_id=umbrella`;

export function partner({ demo, call, request, minted }: Scene): Section {
  const { issuer: iss, signToken } = demo.partner;
  const { audience: aud } = demo.authentication;
  /** Signed by the partner, with the accounts and the roles in each as members of an object. */
  const carolOf = (organization: object) => () => {
    const identity = { uid: 'user-carol', app: 'partner-portal', scope: everyScope, organization };
    return signToken({ ...identity, iss, aud, iat: now(), exp: now() + 3600 });
  };
  const carol = carolOf(inBoth);
  const reader = minted({ scope: 'subscriptions:read' });
  return {
    title: "A partner's issuer, and one token of two accounts: initech (owner), umbrella (member)",
    steps: [
      request('carol reads initech, as its owner', '200', { token: carol, target: initech, showsIdentity: true }),
      request('she reads umbrella, as a member', '200', { token: carol, target: umbrella, showsIdentity: true }),
      request('she deletes in initech', '200', {
        token: carol,
        method: 'DELETE',
        target: `${subscriptions}/accounts/initech/42`,
      }),
      request('she deletes in umbrella', '403 role_forbidden', {
        token: carol,
        method: 'DELETE',
        target: `${subscriptions}/42?account_id=umbrella`,
      }),
      request('she names no account', '400 account_required', { token: carol }),
      request('she names both', '403 account_mismatch', {
        token: carol,
        target: initech,
        headers: { 'x-account-id': 'umbrella' },
      }),
      request('the partner names acme, which is not its own', '403 account_mismatch', {
        token: carolOf({ acme: { roles: ['owner'] } }),
        target: acme,
      }),
      request('an application with the scope to read', '200', { token: reader, target: acme }),
      step('it writes, for an owner', '403 scope_forbidden', async () => {
        const { actual, response } = await call({ token: reader, method: 'POST', target: acme });
        return { actual, notes: [`www-authenticate: ${response.headers['www-authenticate']}`] };
      }),
    ],
  };
}
