// A service whose configuration a test reloads, with issuers and key files of its own.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import type { CheckRequestParts } from '../../lab/check-request.ts';
import { type LogLine, reasonOf, type ServiceLab, serviceConfig, startServiceLab } from '../../lab/service.ts';
import { signingKey } from '../../lab/signing-key.ts';
import { startTestIssuer, type TestIssuer } from '../../lab/test-issuer.ts';
import { audience } from '../../lab/token.ts';
import type { Config } from '../../src/config/schema.ts';
import type { CheckResponseMessage } from '../../src/envoy/protocol.ts';
import type { WatchOutcome } from '../../src/files/file-watch.ts';
import { freshFolder } from '../support/fresh-folder.ts';

export type Changes = Readonly<Record<string, unknown>>;

// These tests do not depend on the grace period.
export const quick = { shutdown: { graceSeconds: 0 } };

export function headersOf(response: CheckResponseMessage): Readonly<Record<string, string>> {
  const headers = response.ok_response?.headers ?? [];
  return Object.fromEntries(headers.map(({ header }) => [header.key, header.value]));
}

/** What a test has started, ended after it. */
export const ends: (() => Promise<unknown>)[] = [];

export let lab: ServiceLab;

export const issuerConfig = (changes: Changes = {}) => ({
  issuer: lab.issuer.url,
  audiences: [audience],
  jwksUrl: lab.issuer.jwksUrl,
  ...changes,
});

export const config = (changes: Changes = {}): Config => serviceConfig(lab.issuer, { ...quick, ...changes });

export const reload = (changes: Changes = {}): Promise<WatchOutcome> =>
  lab.service.reload({ kind: 'config', config: config(changes) });

export const reloadIssuer = (changes: Changes): Promise<WatchOutcome> => reload({ issuers: [issuerConfig(changes)] });

export async function otherIssuer(kid = 'k1'): Promise<TestIssuer> {
  const issuer = await startTestIssuer({ keys: [(await signingKey(kid)).publicJwk] });
  ends.push(() => issuer.stop());
  return issuer;
}

export const lines = (message: string): readonly LogLine[] => lab.log.filter(line => line.msg === message);

export const metric = async (name: string): Promise<string | undefined> => {
  const text = await (await lab.admin('/metrics')).text();
  return text
    .split('\n')
    .find(line => line.startsWith(`${name} `))
    ?.slice(name.length + 1);
};

/** Sends checks with a token that the service has verified before. */
export async function knownToken(claims: Changes = {}): Promise<(parts?: CheckRequestParts) => Promise<string>> {
  const authorization = `Bearer ${await lab.token({ claims })}`;
  expect(reasonOf(await lab.check(authorization))).to.equal('allowed');
  expect(reasonOf(await lab.check(authorization))).to.equal('allowed');
  expect(lines('check').at(-1)).to.include({ cache: 'hit' });
  return async parts => reasonOf(await lab.check(authorization, parts));
}

export async function keyFile(content: unknown): Promise<string> {
  const folder = freshFolder();
  await writeFile(join(folder, 'jwks.json'), JSON.stringify(content));
  return join(folder, 'jwks.json');
}

export const successes = (): Promise<string | undefined> =>
  metric('account_authz_config_reloads_total{result="success"}');

export const failures = (): Promise<string | undefined> =>
  metric('account_authz_config_reloads_total{result="failure"}');

/** Starts a service for a test, and stops it with the issuers and files of the test. */
export async function startReloadLab(): Promise<void> {
  lab = await startServiceLab({ config: quick, changes: true });
}

export async function stopReloadLab(): Promise<void> {
  await lab.stop();
  for (const end of ends.splice(0)) await end();
}
