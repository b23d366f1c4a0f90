// The sections of requests that are refused for what they ask, with valid tokens: another account, or an ambiguous path or header.
import type { Section } from '../run-sections.ts';
import { acme, globex, type Scene, subscriptions } from './scene.ts';

export function otherAccounts({ request, owner, member, minted }: Scene): Section {
  return {
    title: 'Refused: another account, or a role without the permission',
    steps: [
      request('alice of acme asks for globex', '403 account_mismatch', { token: owner, target: globex }),
      request('the same in a header', '403 account_mismatch', { token: owner, headers: { 'x-account-id': 'globex' } }),
      request('the same in the query', '403 account_mismatch', {
        token: owner,
        target: `${subscriptions}?account_id=globex`,
      }),
      request('her token for globex does not open acme', '403 account_mismatch', {
        token: member,
        target: `${subscriptions}?account_id=acme`,
      }),
      request('a member deletes', '403 role_forbidden', {
        token: member,
        method: 'DELETE',
        target: `${subscriptions}/42`,
      }),
      request('a member on the pages of owners and admins', '403 role_forbidden', { token: member, target: globex }),
      request('an unknown role', '403 role_forbidden', { token: minted({ role: 'emperor' }) }),
      request('a path that is neither protected nor served', '404 from Envoy', {
        token: owner,
        target: '/api/accounts',
      }),
    ],
  };
}

export function ambiguous({ request, owner: token }: Scene): Section {
  return {
    title: 'Refused: ambiguous paths and headers',
    steps: [
      request('dot segments out of acme into globex', '403 account_mismatch', { token, target: `${acme}/../globex` }),
      request('the same, the slashes encoded', '400 from Envoy', { token, target: `${acme}%2F..%2Fglobex` }),
      request('the same, encoded twice', '400 request_invalid', { token, target: `${acme}/%252e%252e/globex` }),
      request('a path parameter', '400 request_invalid', { token, target: `${acme};v=1` }),
      request('another case', '404 from Envoy', { token, target: '/API/subscriptions' }),
      request('an account twice in the query', '403 account_mismatch', {
        token,
        target: `${subscriptions}?account_id=acme&account_id=globex`,
      }),
      request('an encoded name in the query', '400 request_invalid', {
        token,
        target: `${subscriptions}?account%5Fid=globex`,
      }),
      request('an identity header with underscores', '400 from Envoy', { token, headers: { x_auth_uid: 'mallory' } }),
    ],
  };
}
