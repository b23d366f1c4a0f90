// The service behind Envoy: notes which requests have come and as whose, and answers with nothing. A request carries its own name in the
// query, as `?n=NAME`. In a process of its own, since a good token's answer comes through it: what the harness does meanwhile, such
// as reading the answers to a flood, would count as the product's. noting-upstream-worker.ts is the other side.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface NotingUpstream {
  readonly port: number;
  /** The x-auth-acc with which each request came, by its name; several lines joined with ", ", none is empty. */
  readonly accounts: ReadonlyMap<string, string>;
  /** Resolves once `accounts` has all that were answered until now. */
  told(): Promise<void>;
  stop(): Promise<void>;
}

export type UpstreamReport =
  | { readonly kind: 'listening'; readonly port: number }
  | { readonly kind: 'came'; readonly name: string; readonly account: string }
  | { readonly kind: 'told' };

/** On a free port of 127.0.0.1. */
export async function startNotingUpstream(): Promise<NotingUpstream> {
  const worker = fork(fileURLToPath(new URL('noting-upstream-worker.ts', import.meta.url)));
  const kill = (): void => void worker.kill('SIGKILL');
  process.once('exit', kill);
  const exited = once(worker, 'exit').then(([code]) => {
    process.off('exit', kill);
    throw new Error(`the upstream has ended with ${code}`);
  });
  exited.catch(() => undefined);
  const accounts = new Map<string, string>();
  let onTold: (() => void)[] = [];
  const listening = new Promise<number>(resolve => {
    worker.on('message', (report: UpstreamReport) => {
      switch (report.kind) {
        case 'listening':
          return resolve(report.port);
        case 'came':
          return void accounts.set(report.name, report.account);
        case 'told': {
          const waiting = onTold;
          onTold = [];
          for (const each of waiting) each();
        }
      }
    });
  });
  return {
    port: await Promise.race([listening, exited]),
    accounts,
    told() {
      const told = new Promise<void>(resolve => void onTold.push(resolve));
      worker.send('tell');
      return Promise.race([told, exited]);
    },
    async stop() {
      kill();
      await exited.catch(() => undefined);
    },
  };
}
