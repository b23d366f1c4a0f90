// Issuers, files and sources for the tests of fetches; what a test has started ends after it.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { signingKey } from '../../lab/signing-key.ts';
import { testCertificate } from '../../lab/test-certificate.ts';
import { startTestIssuer, type TestIssuer, type TestIssuerOptions } from '../../lab/test-issuer.ts';
import { type FetchRequest, type FetchResult, fetchDocument } from '../../src/http/fetch.ts';
import { createSource, type IssuerKeySettings } from '../../src/keys/key-source.ts';
import { freshFolder } from '../support/fresh-folder.ts';
import { useEnds } from '../support/use-ends.ts';

export const authority = testCertificate({ name: 'test authority', isAuthority: true, addresses: [] });

/** A host name that only a test resolves. */
export const host = 'auth.account-authz.test';

export const own = testCertificate({ authority });

/** A lab for the tests of a `describe`. */
export function useFetchLab() {
  const ends = useEnds();
  const folder = freshFolder();
  before(async () => {
    await writeFile(join(folder, 'authority.pem'), authority.cert);
  });
  return {
    ends,
    /** A file with the certificate of `authority`. */
    get trusted(): string {
      return join(folder, 'authority.pem');
    },
    async issuerWith(options: TestIssuerOptions = {}): Promise<TestIssuer> {
      const issuer = await startTestIssuer({ keys: [(await signingKey('k1')).publicJwk], ...options });
      ends.push(() => issuer.stop());
      return issuer;
    },
    /** Writes a file in the folder of the lab, and returns its name. */
    async write(name: string, text: string | Uint8Array): Promise<string> {
      await writeFile(join(folder, name), text);
      return join(folder, name);
    },
  };
}

const never = new AbortController().signal;

export function get(url: string, settings: Partial<FetchRequest> = {}): Promise<FetchResult> {
  return fetchDocument({ url, proxy: {}, ...settings }, never);
}

/** Reads from a source once. */
export function read(
  changes: Partial<IssuerKeySettings>,
  { timeoutMs = 10_000, ...options }: Partial<Parameters<typeof createSource>[1]> = {},
): Promise<FetchResult> {
  const settings = { issuer: 'https://issuer', algorithms: ['ES256'], ...changes };
  return createSource(settings, { timeoutMs, proxy: {}, ...options })(never, undefined);
}

/** The text of a document, or the problem. */
export function textOf(result: FetchResult): string {
  if (result.kind === 'document') return Buffer.from(result.bytes).toString();
  return result.kind === 'problem' ? result.problem : result.kind;
}
