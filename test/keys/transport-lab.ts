// Issuers over TLS and fetches from them.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { testCertificate } from '../../lab/test-certificate.ts';
import { startTestIssuer, type TestIssuer, type TestIssuerOptions } from '../../lab/test-issuer.ts';
import { getKeyDocument, type KeyDocument, type KeyRequest } from '../../src/keys/key-transport.ts';

export const authority = testCertificate({ name: 'test authority', isAuthority: true, addresses: [] });

/** A host name that only a proxy resolves. */
export const host = 'auth.account-authz.test';

export const own = testCertificate({ authority });

export interface TransportLab {
  /** What a test has started, ended after it. */
  readonly ends: (() => unknown)[];
  /** A file with the certificate of `authority`. */
  readonly trusted: string;
  issuerWith(options: TestIssuerOptions): Promise<TestIssuer>;
  /** Writes a file in the folder of the lab, and returns its name. */
  write(name: string, text: string): Promise<string>;
}

/** A lab for the tests of a `describe`. */
export function useTransportLab(): TransportLab {
  const ends: TransportLab['ends'] = [];
  let folder = '';
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'account-authz-transport-'));
    await writeFile(join(folder, 'authority.pem'), authority.cert);
  });
  afterEach(async () => {
    for (const end of ends.splice(0)) await end();
  });
  after(() => rm(folder, { recursive: true }));
  return {
    ends,
    get trusted() {
      return join(folder, 'authority.pem');
    },
    async issuerWith(options) {
      const issuer = await startTestIssuer(options);
      ends.push(() => issuer.stop());
      return issuer;
    },
    async write(name, text) {
      await writeFile(join(folder, name), text);
      return join(folder, name);
    },
  };
}

export function get(
  url: string,
  settings: Partial<KeyRequest> = {},
  getDocument = getKeyDocument,
): Promise<KeyDocument> {
  return getDocument({ url, proxy: {}, ...settings }, new AbortController().signal);
}

/** Runs with a variable of the environment that has another value. */
export async function withVariable<Result>(name: string, value: string, run: () => Promise<Result>): Promise<Result> {
  const before = process.env[name];
  process.env[name] = value;
  try {
    return await run();
  } finally {
    if (before === undefined) delete process.env[name];
    else process.env[name] = before;
  }
}
