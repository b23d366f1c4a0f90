// Chooses free ports of 127.0.0.1 for parts that must know their port before they start.
import { createServer } from 'node:net';

// Below the ports that Linux gives to outgoing connections, so that none takes a port between its choice and its use. Each process starts
// elsewhere and offers no port twice: several run at the same time.
const [firstPort, portCount] = [16_000, 16_000];
let nextPort = (process.pid * 61) % portCount;

/** Ports of 127.0.0.1 that are free, all different. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    nextPort = (nextPort + 1) % portCount;
    if (await isFree(firstPort + nextPort)) ports.push(firstPort + nextPort);
  }
  return ports;
}

export function isFree(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
