// What a provider can do in `npm run providers`: run, issue tokens, rotate its keys, stop and start again with what it had.
import type { ProviderPage } from './page.ts';

export interface Request {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A token, a request with it and the answer that the configuration of the page gives. */
export interface Case {
  readonly grant: string;
  readonly name: string;
  readonly token: string | undefined;
  readonly method?: string;
  readonly expected: string;
}

export interface Provider {
  /** Of its page and its fixture. */
  readonly id: string;
  readonly name: string;
  readonly page: ProviderPage;
  /** What stands in place of the addresses on the page. */
  readonly addresses: ReadonlyMap<string, string>;
  /** Starts the server, then runs the commands of the page up to the configuration. */
  setUp(): Promise<void>;
  stop(): Promise<void>;
  /** Again, with the data and on the address that it had. */
  start(): Promise<void>;
  /** Ends everything, and removes what it wrote. */
  close(): Promise<void>;
  /** The access token of a user of account acme with the role member. */
  userToken(): Promise<string>;
  /** The access token of a service of account acme with the role owner. */
  serviceToken(): Promise<string>;
  /** One that expires within seconds. */
  shortToken(): Promise<string>;
  /** What only this provider can get wrong. */
  cases(): Promise<readonly Case[]>;
  /** Runs the commands under a heading of the page. */
  runSection(heading: string): Promise<void>;
}

/** Headings that the pages have in common. */
export const headings = {
  publish: 'Publish the new key',
  sign: 'Sign with the new key',
  remove: 'Remove the old key',
  replace: 'Replace a stolen key at once',
  token: 'A token, decoded',
  configuration: 'The configuration of account-authz',
} as const;

/** What the log says of tokens that are no access tokens for us. */
export const refusals = {
  audience: '401 token_invalid: aud does not name us',
  account: '401 token_invalid: acc is missing or not a string',
  algorithm: '401 token_invalid: alg is not one of algorithms',
  opaque: '401 token_invalid: not three base64url segments',
  key: '401 token_invalid: kid is not a key of the issuer',
  signature: '401 token_invalid: the signature does not verify',
} as const;
