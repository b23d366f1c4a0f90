// Loads only what the health command needs: where the service listens, and its TLS files. An error elsewhere in the file must not
// fail the probe: a running service keeps its configuration while the changed file is refused.
import { dirname, resolve } from 'node:path';
import * as z from 'zod';
import { loadBoundedFile } from '../files/bounded-file.ts';
import { isJsonObject } from '../json/strict-json.ts';
import { type Misconfiguration, misconfiguration, toProblem, unreadable } from './problems.ts';
import { type Config, configSchema } from './schema.ts';
import { toProblems } from './schema-problems.ts';
import { parseYamlDocument } from './yaml-document.ts';

export interface ListenSettings extends Pick<Config, 'listen' | 'admin' | 'tls'> {
  readonly kind: 'listen settings';
}

const { listen, admin, tls } = configSchema.shape;
const settings = z.object({ listen, admin, tls });

/** File names in the result are absolute. */
export async function loadListenSettings(file: string): Promise<ListenSettings | Misconfiguration> {
  const content = await loadBoundedFile(file);
  if (content.kind === 'problem') return unreadable(content.problem);
  const document = parseYamlDocument(content.bytes);
  if (document.kind === 'problems') return misconfiguration(document.problems.map(toProblem));
  if (!isJsonObject(document.value)) return unreadable('the file must be a mapping');
  const parsed = settings.safeParse(document.value, { reportInput: true });
  if (!parsed.success) return misconfiguration(toProblems(parsed.error.issues, document));
  const { tls: files, ...addresses } = parsed.data;
  const folder = dirname(resolve(file));
  const absolute =
    files && Object.fromEntries(Object.entries(files).map(([key, name]) => [key, resolve(folder, name)] as const));
  return {
    kind: 'listen settings',
    ...addresses,
    ...(files === undefined ? {} : { tls: { ...files, ...absolute } }),
  };
}
