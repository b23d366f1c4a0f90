// Chooses the ports of the demo: the documented ones if they are free.
import { freePorts, isFree } from '../test/support/free-ports.ts';

/** The wanted ports, with a free one in place of each that is in use. */
export async function choosePorts<Name extends string>(
  wanted: Readonly<Record<Name, number>>,
): Promise<Record<Name, number>> {
  const names = Object.keys(wanted) as Name[];
  const others = await freePorts(names.length);
  const chosen = names.map(async (name, index) => [name, (await isFree(wanted[name])) ? wanted[name] : others[index]]);
  return Object.fromEntries(await Promise.all(chosen)) as Record<Name, number>;
}
