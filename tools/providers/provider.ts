// A provider of `npm run providers`: it starts, issues tokens, rotates its keys, stops, and starts again with the same data.
import { headings, type ProviderPage } from '../../lab/provider-page.ts';
import type { Tokens } from './oauth.ts';
import { startPageShell } from './page.ts';
import { type ServerCommand, type ServerProcess, startServer } from './server-process.ts';

export interface Request {
  readonly method?: string;
  readonly host?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A token, a request with it, by default for account acme, and the answer that the configuration of the page gives. */
export interface Case extends Partial<Request> {
  readonly grant: string;
  readonly name: string;
  readonly token: string | undefined;
  readonly expected: string;
}

/** Another configuration, under a heading of the page that may have commands of its own. */
export interface Variant {
  readonly heading: string;
  /** A section of it whose commands run, and change the configuration, while the service does. */
  readonly later?: { readonly heading: string; readonly cases: () => Promise<readonly Case[]> };
  cases(): Promise<readonly Case[]>;
}

/** Back-channel logout, where a trial has it. */
export interface Logout {
  /** Of the page: its commands tell the provider where the program is. */
  readonly heading: string;
  /** For the program of docs/example. */
  readonly env: Readonly<Record<string, string>>;
  readonly listUrl: string;
  /** Ends the session of these tokens. */
  signOut(tokens: Tokens): Promise<void>;
}

export interface Provider {
  /** The name of its page and its fixture. */
  readonly id: string;
  readonly name: string;
  readonly page: ProviderPage;
  /** Maps the addresses on the page to those of the run. */
  readonly addresses: ReadonlyMap<string, string>;
  readonly variants: readonly Variant[];
  readonly logout?: Logout | undefined;
  userTokens(username: string): Promise<Tokens>;
  /** Starts the server, then runs the commands of the page up to the key rotation, without those of the variants. */
  setUp(): Promise<void>;
  stop(): Promise<void>;
  /** Starts the server again, with the same data and on the same address. */
  start(): Promise<void>;
  /** Stops everything and removes the files. */
  close(): Promise<void>;
  /** The access token of a user; by default of one of account acme with the role member. */
  userToken(username?: string): Promise<string>;
  /** The access token of a service of account acme with the role owner. */
  serviceToken(): Promise<string>;
  /** One that expires within seconds. */
  shortToken(): Promise<string>;
  /** Cases that only this provider has. */
  cases(): Promise<readonly Case[]>;
  /** Runs the commands under a heading of the page. */
  runSection(heading: string): Promise<void>;
}

/** Where one provider differs from another. */
export interface ProviderParts
  extends Pick<Provider, 'id' | 'name' | 'page' | 'addresses' | 'variants' | 'cases' | 'logout' | 'userTokens'> {
  readonly server: ServerCommand;
  /** Environment variables of the commands on the page. */
  readonly shellEnv?: Readonly<Record<string, string>>;
  /** Commands that add the clients and users that the trial needs and the page lacks. */
  readonly trialClients: string;
  /** Before the first start. */
  prepare?(): Promise<unknown>;
  cleanUp(): Promise<void>;
  serviceTokens(clientId: string): Promise<Tokens>;
}

export async function createProvider(parts: ProviderParts): Promise<Provider> {
  const { page } = parts;
  const shell = await startPageShell(page, parts.addresses, parts.shellEnv ?? {});
  let server: ServerProcess | undefined;
  const start = async (): Promise<void> => {
    server = await startServer(parts.server);
  };
  const stop = async (): Promise<void> => {
    await server?.stop();
    server = undefined;
  };
  const serviceToken = async (clientId: string): Promise<string> => (await parts.serviceTokens(clientId)).access_token;
  return {
    ...parts,
    start,
    stop,
    async setUp() {
      await parts.prepare?.();
      await start();
      const variants = parts.variants.flatMap(({ heading, later }) => [heading, ...(later ? [later.heading] : [])]);
      if (parts.logout !== undefined) variants.push(parts.logout.heading);
      const setUp = page.sections.slice(0, page.sections.indexOf(headings.publish));
      for (const heading of setUp.filter(each => !variants.includes(each))) await shell.run(heading);
      await shell.runScript('the clients and users of the trial', parts.trialClients);
    },
    async close() {
      await stop();
      await shell.stop();
      await parts.cleanUp();
    },
    userToken: async (username = 'alice') => (await parts.userTokens(username)).access_token,
    serviceToken: () => serviceToken('billing'),
    shortToken: () => serviceToken('short'),
    runSection: heading => shell.run(heading),
  };
}

/** The answers to tokens that are not access tokens for account-authz, with the detail of the log. */
export const refusals = {
  audience: '401 token_invalid: aud names none of audiences',
  account: '401 token_invalid: acc is missing',
  algorithm: '401 token_invalid: alg is not one of algorithms',
  secret: '401 token_invalid: alg is a shared secret',
  opaque: '401 token_invalid: an opaque token, no JWT',
  key: '401 token_invalid: kid is not a key of the issuer',
  signature: '401 token_invalid: the signature does not verify',
} as const;
