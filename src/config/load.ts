// Loads a configuration file: the effective settings, or every problem of it and of the files that it names.
// Does not use the network.
import { dirname, resolve } from 'node:path';
import * as z from 'zod';
import type { PermissionTable } from '../authz/permission.ts';
import { toAccountGrammar } from '../authz/places/places.ts';
import { type FileContent, loadBoundedFile, loadRegularFile } from '../files/bounded-file.ts';
import { type FileVersion, fileVersions } from '../files/file-watch.ts';
import { isJsonObject, memberOf } from '../json/strict-json.ts';
import { loadRevocations } from '../revocation/revocation-file.ts';
import type { RevocationList } from '../revocation/revocation-list.ts';
import { parseListenAddress, type TcpAddress } from '../text/listen-address.ts';
import { expandIssuers } from './issuer-templates.ts';
import { loadNamedFileProblems, namedFiles, nameIn, resolveNamedFiles } from './named-files.ts';
import {
  type ConfigProblem,
  type Misconfiguration,
  misconfiguration,
  toListProblems,
  toProblem,
  toProblems,
  unreadable,
} from './problems.ts';
import { type Config, configSchema } from './schema.ts';
import { maxEntries, tooMany } from './value-schemas.ts';
import { type PathProblem, parseYamlDocument } from './yaml-document.ts';

/** File names are absolute: relative ones start at the folder of the configuration file. */
export interface EffectiveConfig {
  readonly kind: 'config';
  readonly config: Config;
  /** The list that the configuration names, if it was to be read. */
  readonly revocations?: RevocationList;
  /** The files that the configuration names, as they were before they were read. */
  readonly namedFiles?: readonly FileVersion[];
}

export interface LoadedConfig extends EffectiveConfig {
  /** For remarks about the file. Holds the whole document: several times the memory of the file. */
  readonly written: WrittenConfig;
}

/** What the file says, before the issuers with `{acc}` are expanded. */
export interface WrittenConfig {
  readonly config: Config;
  /** What the entries of the revocation list name. */
  readonly revoked: { readonly iss: ReadonlySet<string>; readonly acc: ReadonlySet<string> };
  /** Adds line and column. */
  problemAt(problem: PathProblem): ConfigProblem;
}

export interface LoadOptions {
  /** false: for a command that runs on another machine than the service. */
  readonly readsNamedFiles?: boolean;
  /**
   * false: the service reads its revocation list itself; 'if invalid': only to name its problems beside those of the configuration.
   * By default as `readsNamedFiles`.
   */
  readonly readsRevocations?: boolean | 'if present' | 'if invalid';
}

export const maxConfigBytes = 256 * 1024;

/** `isRegular` refuses a pipe, which would block until somebody writes to it. */
export function readConfigFile(file: string, { isRegular = false } = {}): Promise<FileContent> {
  return isRegular ? loadRegularFile(file, maxConfigBytes) : loadBoundedFile(file, maxConfigBytes);
}

export async function loadConfig(file: string, options?: LoadOptions): Promise<LoadedConfig | Misconfiguration> {
  return validateConfig(await readConfigFile(file), file, options);
}

/** Validates content that has been read from the file, and reads the files that it names. */
export async function validateConfig(
  content: FileContent,
  file: string,
  { readsNamedFiles = true, readsRevocations = readsNamedFiles }: LoadOptions = {},
): Promise<LoadedConfig | Misconfiguration> {
  if (content.kind === 'problem') return unreadable(content.problem);
  const document = parseYamlDocument(content.bytes);
  if (document.kind === 'problems') return misconfiguration(document.problems.map(toProblem));
  const problemAt = ({ path, message }: PathProblem): ConfigProblem =>
    toProblem({ path, position: document.positionOf(path, 'value'), message });
  const excess = Object.entries(maxEntries).flatMap(([key, max]) => {
    const entries = memberOf(document.value, key);
    const count = typeof entries === 'object' && entries !== null ? Object.keys(entries).length : 0;
    return count > max
      ? [{ path: [key], message: tooMany(max, key === 'public' ? 'public route' : key.slice(0, -1)) }]
      : [];
  });
  if (excess.length > 0) return misconfiguration(excess.map(problemAt));

  const folder = dirname(resolve(file));
  const versions = readsNamedFiles ? await fileVersions(namedFiles(document.value, folder)) : [];
  const parsed = configSchema.safeParse(document.value, { reportInput: true });
  const fileProblems = readsNamedFiles ? await loadNamedFileProblems(document.value, folder) : [];
  const isValid = parsed.success && fileProblems.length === 0 && document.problems.length === 0;
  const readsList = readsRevocations === 'if invalid' ? !isValid : readsRevocations;
  const name = readsList ? nameIn(memberOf(document.value, 'revocation'), 'file', folder) : undefined;
  const revoked = { iss: new Set<string>(), acc: new Set<string>() };
  const loaded =
    name === undefined
      ? undefined
      : await loadRevocations(name, ({ values: { iss, acc } }) => {
          if (iss !== undefined) revoked.iss.add(iss);
          if (acc !== undefined) revoked.acc.add(acc);
        });
  const isLeftOut = readsRevocations === 'if present' && loaded?.kind === 'problem' && loaded.reason === 'missing';
  const revocations = isLeftOut ? undefined : loaded;
  const isUnreadable = revocations?.kind === 'problem';
  const listProblems = isUnreadable ? [{ path: ['revocation', 'file'], message: revocations.problem }] : [];
  // A list in one expression: a call takes no more arguments than the stack holds.
  const problems = [
    ...document.problems.map(toProblem),
    ...toProblems(parsed.error?.issues ?? [], document),
    ...[...fileProblems, ...listProblems].map(problemAt),
    ...(name !== undefined && revocations?.kind === 'problems' ? toListProblems(name, revocations.problems) : []),
  ];
  if (!parsed.success || problems.length > 0) return misconfiguration(problems, versions);
  const { roles, scopes } = parsed.data;
  const inOrder: Config = {
    ...parsed.data,
    roles: sorted(roles, document.keysAt(['roles'])),
    ...(scopes && { scopes: sorted(scopes, document.keysAt(['scopes'])) }),
  };
  const config = resolveNamedFiles(inOrder, folder);
  const list = revocations?.kind === 'revocations' ? revocations.list : undefined;
  return {
    kind: 'config',
    config: { ...config, issuers: expandIssuers(config.issuers, toAccountGrammar(config.account)) },
    namedFiles: versions,
    ...(list && { revocations: list }),
    written: { config, revoked, problemAt },
  };
}

function sorted(table: PermissionTable, names: readonly string[]): PermissionTable {
  return new Map(names.map(name => [name, table.get(name) ?? []]));
}

const adminAlone = z.object({ admin: configSchema.in.shape.admin });

/** The address of `admin` alone: an error elsewhere in a changed file, which a running service refuses, must not fail a probe. */
export async function loadAdminAddress(file: string): Promise<TcpAddress | Misconfiguration> {
  const content = await readConfigFile(file);
  if (content.kind === 'problem') return unreadable(content.problem);
  const document = parseYamlDocument(content.bytes);
  if (document.kind === 'problems') return misconfiguration(document.problems.map(toProblem));
  if (!isJsonObject(document.value)) return unreadable('the file must be a mapping');
  const parsed = adminAlone.safeParse(document.value, { reportInput: true });
  if (!parsed.success) return misconfiguration(toProblems(parsed.error.issues, document));
  const address = parseListenAddress(parsed.data.admin);
  if (address.kind === 'tcp' && address.port !== 0) return address;
  return unreadable('admin must have a port other than 0 (any free port): the chosen one is not known here');
}
