// Who exists in the demo: users, the accounts that they are members of, and the client applications. All of it is made up.
import { createHash, timingSafeEqual } from 'node:crypto';

export interface User {
  readonly uid: string;
  /** What is typed at sign-in. */
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

/** An application in the user's hands: it can keep no secret, so it proves itself by PKCE. */
export interface PublicClient {
  readonly kind: 'public';
  readonly clientId: string;
  readonly redirectUri: string;
}

/** A service that calls on its own behalf, with a fixed role in one account. */
export interface BackendClient {
  readonly kind: 'backend';
  readonly clientId: string;
  readonly clientSecret: string;
  readonly uid: string;
  readonly account: string;
  readonly role: string;
}

export type Client = PublicClient | BackendClient;

export interface Directory {
  readonly users: readonly User[];
  readonly memberships: readonly Membership[];
  readonly clients: readonly Client[];
  /** The client whose own form sign-in is: account tokens derived from a sign-in are issued to it. */
  readonly signInClient: string;
}

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

/** Alice owns acme and may look at globex, which Bob owns; initech is none of her business. */
export const demoDirectory: Directory = {
  users: [alice, bob],
  memberships: [
    { uid: alice.uid, account: 'acme', role: 'owner' },
    { uid: alice.uid, account: 'globex', role: 'member' },
    { uid: bob.uid, account: 'globex', role: 'owner' },
    { uid: bob.uid, account: 'initech', role: 'admin' },
  ],
  clients: [webApp, billingJob],
  signInClient: webApp.clientId,
};

/** The user whom name and password are right for; both ways of being wrong take the same work. */
export function authenticate(directory: Directory, name: string, password: string): User | undefined {
  const user = directory.users.find(each => each.name === name);
  const right = timingSafeEqual(digest(password), digest(user?.password ?? ''));
  return user !== undefined && right ? user : undefined;
}

export function membershipOf(directory: Directory, uid: string, account: string): Membership | undefined {
  return directory.memberships.find(each => each.uid === uid && each.account === account);
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
