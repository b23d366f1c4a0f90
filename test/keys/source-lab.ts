// A source of keys and the issuers that it reads, for the tests of one fetch; an afterEach hook stops the issuers.

import { signingKey } from '../../lab/signing-key.ts';
import { startTestIssuer, type TestIssuer, type TestIssuerOptions } from '../../lab/test-issuer.ts';
import { createFetchSlots } from '../../src/keys/fetch-slots.ts';
import {
  createKeySource,
  type IssuerKeySettings,
  type KeySource,
  type SourceResult,
} from '../../src/keys/key-source.ts';
import { getKeyDocument } from '../../src/keys/key-transport.ts';

export const jwksText = '{"keys":[]}';

/** What a test has started, ended after it. */
export const ends: (() => Promise<unknown>)[] = [];

export async function endAll(): Promise<void> {
  for (const end of ends.splice(0)) await end();
}

export async function issuerWith(options: TestIssuerOptions = {}): Promise<TestIssuer> {
  const issuer = await startTestIssuer({ keys: [(await signingKey('k1')).publicJwk], ...options });
  ends.push(() => issuer.stop());
  return issuer;
}

export function createSource(changes: Partial<IssuerKeySettings>, timeoutMs = 5_000, proxy = {}): KeySource {
  const settings = { issuer: 'https://issuer', algorithms: ['ES256'], ...changes };
  const io = { getDocument: getKeyDocument, slots: createFetchSlots() };
  return createKeySource({ settings, timeoutMs, proxy, ...io });
}

export const none = (): undefined => undefined;

export const read = (source: KeySource): Promise<SourceResult> => source.read(new AbortController().signal, none);

export const textOf = (result: SourceResult): string =>
  result.kind === 'body' ? Buffer.from(result.bytes).toString() : JSON.stringify(result);
