// Loads the address of `admin` alone. An error elsewhere in the file must not fail a probe: a running service keeps its configuration
// while the changed file is refused.
import * as z from 'zod';
import { isJsonObject } from '../json/strict-json.ts';
import { parseListenAddress, type TcpAddress } from '../text/listen-address.ts';
import { readConfigFile } from './load.ts';
import { type Misconfiguration, misconfiguration, toProblem, unreadable } from './problems.ts';
import { configSchema } from './schema.ts';
import { toProblems } from './schema-problems.ts';
import { parseYamlDocument } from './yaml-document.ts';

const settings = z.object({ admin: configSchema.in.shape.admin });

export async function loadAdminAddress(file: string): Promise<TcpAddress | Misconfiguration> {
  const content = await readConfigFile(file);
  if (content.kind === 'problem') return unreadable(content.problem);
  const document = parseYamlDocument(content.bytes);
  if (document.kind === 'problems') return misconfiguration(document.problems.map(toProblem));
  if (!isJsonObject(document.value)) return unreadable('the file must be a mapping');
  const parsed = settings.safeParse(document.value, { reportInput: true });
  if (!parsed.success) return misconfiguration(toProblems(parsed.error.issues, document));
  const address = parseListenAddress(parsed.data.admin);
  if (address.kind === 'tcp' && address.port !== 0) return address;
  return unreadable('admin must have a port other than 0 (any free port): the chosen one is not known here');
}
