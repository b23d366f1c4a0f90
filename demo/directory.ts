// The users of the demo, their account memberships, and the client applications. All of them are invented.

export interface User {
  readonly uid: string;
  /** The name at sign-in. */
  readonly name: string;
  readonly password: string;
  /** The account that the tokens of the authorization-code flow are for. */
  readonly homeAccount: string;
}

export interface Membership {
  readonly uid: string;
  readonly account: string;
  readonly role: string;
}

/** A public client cannot keep a secret, so it uses PKCE (RFC 7636). */
export interface PublicClient {
  readonly kind: 'public';
  readonly clientId: string;
  readonly redirectUri: string;
}

/** A service that acts on its own behalf, with a fixed role in one account. */
export interface BackendClient {
  readonly kind: 'backend';
  readonly clientId: string;
  readonly clientSecret: string;
  readonly uid: string;
  readonly account: string;
  readonly role: string;
}

export type Client = PublicClient | BackendClient;

export const alice: User = { uid: 'user-alice', name: 'alice', password: 'wonderland', homeAccount: 'acme' };
export const bob: User = { uid: 'user-bob', name: 'bob', password: 'builder', homeAccount: 'globex' };

export const webApp: PublicClient = { kind: 'public', clientId: 'web-app', redirectUri: 'http://127.0.0.1/callback' };
export const billingJob: BackendClient = {
  kind: 'backend',
  clientId: 'billing-job',
  clientSecret: 'not-a-secret-outside-this-demo',
  uid: 'service-billing',
  account: 'acme',
  role: 'admin',
};

export const users: readonly User[] = [alice, bob];
export const clients: readonly Client[] = [webApp, billingJob];

/** Alice owns acme and is a member of globex, which Bob owns; she is not a member of initech. */
export const memberships: readonly Membership[] = [
  { uid: alice.uid, account: 'acme', role: 'owner' },
  { uid: alice.uid, account: 'globex', role: 'member' },
  { uid: bob.uid, account: 'globex', role: 'owner' },
  { uid: bob.uid, account: 'initech', role: 'admin' },
];

export function membershipOf(uid: string, account: string): Membership | undefined {
  return memberships.find(each => each.uid === uid && each.account === account);
}
