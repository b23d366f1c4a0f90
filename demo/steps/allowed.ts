// The section of the allowed requests: what the upstream gets.
import { alice, webApp } from '../directory.ts';
import type { Section } from '../run-sections.ts';
import { acme, identityHeaders, type Scene, step } from './scene.ts';

export function allowed({ demo, tokens, call, request, owner, member }: Scene): Section {
  const backend = () => tokens.backend;
  return {
    title: 'Allowed: the upstream gets the request with the identity headers',
    steps: [
      request('alice lists subscriptions', '200', { token: owner, showsIdentity: true }),
      request('alice lists those of acme', '200', { token: owner, target: acme }),
      request('alice creates one', '200', { token: owner, method: 'POST', target: acme, body: '{"plan":"gold"}' }),
      request('alice looks into globex', '200', { token: member }),
      request('the billing job reads acme', '200', { token: backend, target: acme, showsIdentity: true }),
      step('the bearer token is removed', '200, none upstream', async () => {
        const { actual, seen } = await call({ token: owner });
        const leaked = seen.some(([name]) => name === 'authorization');
        return { actual: `${actual}, ${leaked ? 'sent' : 'none'} upstream` };
      }),
      step('forged identity headers are overwritten', '200, none upstream', async () => {
        const names = { 'x-auth-uid': 'mallory', 'X-Auth-Role': 'owner', 'x-auth-acc': ['globex', 'initech'] };
        const headers = { ...names, 'x-auth-admin': 'true' };
        const { actual, seen, notes = [] } = await call({ token: owner, headers, showsIdentity: true });
        const identity = seen.filter(([name]) => identityHeaders.test(name)).toSorted();
        const asIssued = JSON.stringify(identity) === JSON.stringify(ownerIdentity(demo.authentication.issuer));
        return { actual: `${actual}, ${asIssued ? 'none' : 'some'} upstream`, notes };
      }),
    ],
  };
}

function ownerIdentity(issuer: string): readonly (readonly [string, string])[] {
  const identity = { acc: 'acme', app: webApp.clientId, iss: issuer, role: 'owner', uid: alice.uid };
  return Object.entries(identity).map(([name, value]) => [`x-auth-${name}`, value]);
}
