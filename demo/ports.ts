// Chooses the ports of the demo: the documented ones if they are free.
import { createServer } from 'node:net';
import { freePorts } from '../test/support/envoy.ts';

/** The wanted ports, with a free one in place of each that is in use. */
export async function choosePorts<Name extends string>(
  wanted: Readonly<Record<Name, number>>,
): Promise<Record<Name, number>> {
  const names = Object.keys(wanted) as Name[];
  const others = await freePorts(names.length);
  const chosen = names.map(async (name, index) => [name, (await isFree(wanted[name])) ? wanted[name] : others[index]]);
  return Object.fromEntries(await Promise.all(chosen)) as Record<Name, number>;
}

function isFree(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
