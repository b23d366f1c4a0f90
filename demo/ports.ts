// Chooses the ports of the demo: the documented ones if they are free.
import { freePorts, isFree } from '../lab/free-ports.ts';

/** The wanted ports, with a free one in place of each that is in use. */
export async function choosePorts<Name extends string>(
  wanted: Readonly<Record<Name, number>>,
): Promise<Record<Name, number>> {
  const free = await chooseFreePorts(wanted);
  const names = Object.keys(wanted) as Name[];
  const chosen = names.map(async name => [name, (await isFree(wanted[name])) ? wanted[name] : free[name]]);
  return Object.fromEntries(await Promise.all(chosen)) as Record<Name, number>;
}

/** A free port of each name. */
export async function chooseFreePorts<Name extends string>(
  named: Readonly<Record<Name, number>>,
): Promise<Record<Name, number>> {
  const names = Object.keys(named) as Name[];
  const ports = await freePorts(names.length);
  return Object.fromEntries(names.map((name, index) => [name, ports[index]])) as Record<Name, number>;
}
