// Checks the files that a configuration names: each must be readable and have the right content.
import { resolve } from 'node:path';
import { loadRegularFile } from '../files/bounded-file.ts';
import { parseCertificates } from '../files/certificates.ts';
import { loadTlsFiles, type TlsFileNames, tlsFileKeys } from '../files/tls-files.ts';
import { itemsOf, memberOf } from '../json/strict-json.ts';
import { parseKeySet } from '../keys/jwks.ts';
import { clientCertificateKeys, defaultAlgorithms } from './issuer-schema.ts';
import type { Config, IssuerConfig } from './schema.ts';
import type { PathProblem } from './yaml-document.ts';

type ContentProblem = string | undefined | Promise<string | undefined>;

const contentProblems = { caFile: certificatesProblem, jwksFile: keySetProblem } as const satisfies Partial<
  Record<keyof IssuerConfig, (bytes: Uint8Array, issuer: unknown) => ContentProblem>
>;
const fileKeys = ['caFile', 'jwksFile'] as const satisfies readonly (keyof typeof contentProblems)[];

/** The absolute names of all files that the configuration names. Takes the value before validation. */
export function namedFiles(value: unknown, folder: string): readonly string[] {
  const sections: readonly (readonly [section: unknown, keys: readonly string[]])[] = [
    [memberOf(value, 'tls'), tlsFileKeys],
    [memberOf(value, 'revocation'), ['file', 'caFile', ...clientCertificateKeys]],
    ...itemsOf(memberOf(value, 'issuers')).map(issuer => [issuer, issuerFileKeys] as const),
  ];
  const names = sections.flatMap(([section, keys]) => keys.map(key => nameIn(section, key, folder)));
  return [...new Set(names.filter(name => name !== undefined))];
}

/** Takes the value before validation, which may be invalid elsewhere. Relative names start at the folder. */
export async function loadNamedFileProblems(value: unknown, folder: string): Promise<readonly PathProblem[]> {
  const sections = [
    ...itemsOf(memberOf(value, 'issuers')).map((section, i) => ({ section, path: ['issuers', i] })),
    { section: memberOf(value, 'revocation'), path: ['revocation'] },
  ];
  const checks = sections.flatMap(({ section, path }) => [
    ...fileKeys.map(async key => {
      const name = nameIn(section, key, folder);
      if (name === undefined) return [];
      const loaded = await loadRegularFile(name);
      const message = loaded.kind === 'problem' ? loaded.problem : await contentProblems[key](loaded.bytes, section);
      return message === undefined ? [] : [{ path: [...path, key], message }];
    }),
    loadTlsProblems(section, path, { certFile: 'clientCertFile', keyFile: 'clientKeyFile' }, folder),
  ]);
  const tls = await loadTlsProblems(memberOf(value, 'tls'), ['tls'], ownTlsKeys, folder);
  return [...tls, ...(await Promise.all(checks)).flat()];
}

const listFileKeys = ['file', 'caFile', ...clientCertificateKeys, 'bearerTokenFile'];
const issuerFileKeys = [...fileKeys, ...clientCertificateKeys];

const ownTlsKeys = { certFile: 'certFile', keyFile: 'keyFile', clientCaFile: 'clientCaFile' };

/** The problems of the files that a section names under these keys. */
async function loadTlsProblems(
  section: unknown,
  place: readonly PropertyKey[],
  keys: TlsFileNames,
  folder: string,
): Promise<readonly PathProblem[]> {
  const names = Object.entries(keys).map(([key, named = key]) => [key, nameIn(section, named, folder)] as const);
  const loaded = await loadTlsFiles(Object.fromEntries(names));
  return loaded.kind === 'problems'
    ? loaded.problems.map(({ key, message }) => ({ path: [...place, keys[key] ?? key], message }))
    : [];
}

/** The absolute name of the file in this section. Undefined also for a value that is no file name, which the schema reports. */
export function nameIn(section: unknown, key: string, folder: string): string | undefined {
  const name = memberOf(section, key);
  return typeof name !== 'string' || name === '' || name.includes('\0') ? undefined : resolve(folder, name);
}

/** Makes file names absolute. */
export function resolveNamedFiles(config: Config, folder: string): Config {
  const { tls, revocation } = config;
  return {
    ...config,
    ...(revocation !== undefined && { revocation: withAbsolute(revocation, listFileKeys, folder) }),
    ...(tls !== undefined && { tls: withAbsolute(tls, tlsFileKeys, folder) }),
    issuers: config.issuers.map(issuer => withAbsolute(issuer, [...issuerFileKeys, 'bearerTokenFile'], folder)),
  };
}

function withAbsolute<Section extends object>(section: Section, keys: readonly string[], folder: string): Section {
  const names = keys.flatMap(key => {
    const name = nameIn(section, key, folder);
    return name === undefined ? [] : [[key, name]];
  });
  return { ...section, ...Object.fromEntries(names) };
}

function certificatesProblem(bytes: Uint8Array): string | undefined {
  const parsed = parseCertificates(bytes);
  return parsed.kind === 'problem' ? parsed.problem : undefined;
}

/** Uses the parser of the service with the algorithms of the issuer: a file that passes has a usable key. */
async function keySetProblem(bytes: Uint8Array, issuer: unknown): Promise<string | undefined> {
  const keySet = await parseKeySet(bytes, algorithmsOf(issuer));
  if (keySet.kind === 'keySet') return undefined;
  const { problem } = keySet;
  if (problem.startsWith('no usable key')) return `the file has ${problem}`;
  return `the file is ${problem.startsWith('not a key set') ? '' : 'not a key set: '}${problem}`;
}

// The schema reports algorithms that are not a list; the default applies here.
function algorithmsOf(issuer: unknown): readonly string[] {
  const algorithms = memberOf(issuer, 'algorithms');
  return Array.isArray(algorithms) ? algorithms.filter(name => typeof name === 'string') : defaultAlgorithms;
}
