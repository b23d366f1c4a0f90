// The files that a configuration names: whether each can be read and holds what it should.
import { X509Certificate } from 'node:crypto';
import { resolve } from 'node:path';
import { isJsonObject, parseStrictJson } from '../json/strict-json.ts';
import { loadBoundedFile } from './bounded-file.ts';
import type { IssuerConfig } from './schema.ts';

export interface NamedFileProblem {
  readonly path: readonly PropertyKey[];
  /** A whole sentence about the file. */
  readonly message: string;
}

const contentProblems = {
  caFile: certificatesProblem,
  jwksFile: keySetProblem,
} as const satisfies Partial<Record<keyof IssuerConfig, (bytes: Uint8Array) => string | undefined>>;
const fileKeys = ['caFile', 'jwksFile'] as const satisfies readonly (keyof typeof contentProblems)[];

/** Takes the configuration as it was written, which may have any other problem. Relative names start at the folder. */
export async function loadNamedFileProblems(value: unknown, folder: string): Promise<readonly NamedFileProblem[]> {
  const issuers = isJsonObject(value) && Array.isArray(value.issuers) ? value.issuers : [];
  const checks = issuers.flatMap((issuer: unknown, i) =>
    fileKeys.map(async key => {
      const name = isJsonObject(issuer) ? issuer[key] : undefined;
      if (typeof name !== 'string' || name === '' || name.includes('\0')) return [];
      const loaded = await loadBoundedFile(resolve(folder, name));
      const message = loaded.kind === 'problem' ? loaded.problem : contentProblems[key](loaded.bytes);
      return message === undefined ? [] : [{ path: ['issuers', i, key], message }];
    }),
  );
  return (await Promise.all(checks)).flat();
}

/** Makes the names of the files of an issuer absolute. */
export function resolveNamedFiles(issuer: IssuerConfig, folder: string): IssuerConfig {
  return {
    ...issuer,
    ...(issuer.jwksFile === undefined ? {} : { jwksFile: resolve(folder, issuer.jwksFile) }),
    ...(issuer.caFile === undefined ? {} : { caFile: resolve(folder, issuer.caFile) }),
  };
}

// Text around the blocks is a comment (RFC 7468 section 5.2).
function certificatesProblem(bytes: Uint8Array): string | undefined {
  const text = Buffer.from(bytes).toString('latin1');
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) return 'the file holds no PEM certificate';
  const isComplete = blocks.length === text.split('-----BEGIN CERTIFICATE-----').length - 1;
  return isComplete && blocks.every(isCertificate) ? undefined : 'the file holds a broken certificate';
}

function isCertificate(pem: string): boolean {
  try {
    new X509Certificate(pem);
    return true;
  } catch {
    return false;
  }
}

function keySetProblem(bytes: Uint8Array): string | undefined {
  const json = parseStrictJson(bytes);
  if (json.kind === 'problem') return `the file is not a key set: ${json.problem}`;
  const isKeySet = isJsonObject(json.value) && Array.isArray(json.value.keys);
  return isKeySet ? undefined : 'the file is not a key set: it must be a JSON object with an array "keys"';
}
