// Loads a revocation list from a file.
import { loadInSlices, type UnreadableFile } from '../files/bounded-file.ts';
import { createListReader, type ReadList } from './list-reader.ts';
import type { Revocation } from './revocation-list.ts';

export type LoadedRevocations = ReadList | UnreadableFile;

/** The longest list with its line ends, and room for comments. */
const maxFileBytes = 128 * 1024 * 1024;

/** Reads a regular file only, slice by slice: calls are answered between two. Rejects only on an internal error. */
export async function loadRevocations(file: string, onEntry?: (entry: Revocation) => void): Promise<LoadedRevocations> {
  const reader = createListReader(onEntry);
  return (await loadInSlices(file, maxFileBytes, reader.add)) ?? reader.end();
}
