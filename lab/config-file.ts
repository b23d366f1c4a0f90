// Configuration files for tests: a valid one with changes, in a folder that is removed when the process exits.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { validateConfig } from '../src/config/load.ts';
import { secrets } from './secrets.ts';

const folder = mkdtempSync(join(tmpdir(), 'account-authz-config-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));

/** Writes the file and returns its absolute name. A value, which may be effective settings, is written as JSON, which is YAML. */
export function writeFixture(name: string, content: unknown): string {
  const file = join(folder, name);
  writeFileSync(file, toText(content));
  return file;
}

function toText(content: unknown): string | Uint8Array {
  if (typeof content === 'string' || content instanceof Uint8Array) return content;
  return JSON.stringify(content, (_, value) => (value instanceof Map ? Object.fromEntries(value) : value));
}

/** Loads a file with this content that stands in the folder of the fixtures, without writing it. */
function validated(content: unknown): ReturnType<typeof validateConfig> {
  return validateConfig({ kind: 'bytes', bytes: Buffer.from(toText(content)) }, join(folder, 'config.yaml'));
}

export function fixtureFolder(): string {
  return folder;
}

/** A configuration with the required keys only. */
export function smallestConfig() {
  return {
    issuers: [
      {
        issuer: 'https://auth.example.com',
        audiences: ['https://api.example.com/subscriptions'],
        jwksUrl: 'https://auth.example.com/.well-known/jwks.json',
      },
    ],
    routes: [{ path: '/api/subscriptions/*' }],
    roles: { owner: ['*'] },
  };
}

/** The smallest configuration with values set at paths such as `issuers.0.caFile`; undefined removes a key. */
export function changed(changes: Readonly<Record<string, unknown>>): unknown {
  const config: Record<string, unknown> = smallestConfig();
  for (const [path, value] of Object.entries(changes)) {
    const keys = path.split('.');
    const last = keys.pop() ?? '';
    let inner: Record<string, unknown> = config;
    for (const key of keys) {
      inner[key] ??= {};
      inner = inner[key] as Record<string, unknown>;
    }
    if (value === undefined) delete inner[last];
    else inner[last] = value;
  }
  return config;
}

/** `place: message` of each problem of a file with this content; empty for a valid one. */
export async function problemsOf(content: unknown): Promise<readonly string[]> {
  const loaded = await validated(content);
  const problems = loaded.kind === 'config' ? [] : loaded.problems;
  secrets.show('command', JSON.stringify(problems));
  return problems.map(({ place, message }) => `${place}: ${message}`);
}

/** The place of each problem. */
export async function placesOf(content: unknown): Promise<readonly string[]> {
  const loaded = await validated(content);
  return loaded.kind === 'config' ? [] : loaded.problems.map(({ place }) => place);
}

/** The effective settings of a valid file. */
export async function configOf(content: unknown) {
  const loaded = await validated(content);
  if (loaded.kind === 'misconfiguration') throw new Error(`invalid: ${JSON.stringify(loaded.problems)}`);
  return loaded.config;
}
