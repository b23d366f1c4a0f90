// Reads the certificates of a file that an option names.
import { loadRegularFile } from '../files/bounded-file.ts';
import { parseCertificates } from '../files/certificates.ts';
import { CommandError } from './command.ts';

/** One PEM text each, in the order of the file; none where the option is not given. */
export async function loadCertificates(option: string, file: string | undefined): Promise<readonly string[]> {
  if (file === undefined) return [];
  const loaded = await loadRegularFile(file);
  const parsed = loaded.kind === 'problem' ? loaded : parseCertificates(loaded.bytes);
  if (parsed.kind === 'problem') throw new CommandError(`${option}: ${parsed.problem}`);
  return parsed.certificates.map(each => each.toString());
}
