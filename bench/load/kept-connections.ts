// Connections that stay open from run to run, as those of Envoy do. A new connection would flatter: the collector of a grpc-js server has less to do
// until its first major collection (docs/dev/performance.md).
import { connectWire, type WireClient, type WireClientOptions } from './wire-client.ts';

interface Kept {
  readonly client: WireClient;
  /** Of the present run, or the last one. */
  user: Pick<WireClientOptions, 'onAnswer' | 'onFault'>;
  unanswered: number;
  isBroken: boolean;
}

/** Like connectWire, except that `close` keeps connections on which every call was answered, for the next run with the same target. */
export function createKeptConnections(): typeof connectWire {
  const idle = new Map<string, Kept>();

  async function open(options: WireClientOptions): Promise<Kept> {
    const client = await connectWire({
      ...options,
      onAnswer(...answer) {
        kept.unanswered--;
        kept.user.onAnswer(...answer);
      },
      onFault(error) {
        kept.isBroken = true;
        kept.user.onFault(error);
      },
    });
    const kept: Kept = { client, user: options, unanswered: 0, isBroken: false };
    return kept;
  }

  return async options => {
    const key = JSON.stringify([options.target, options.connections, options.shared]);
    const found = idle.get(key);
    idle.delete(key);
    const kept = found === undefined || found.isBroken ? await open(options) : found;
    kept.user = options;
    return {
      send(...request) {
        kept.unanswered++;
        kept.client.send(...request);
      },
      async close() {
        if (kept.unanswered === 0 && !kept.isBroken) idle.set(key, kept);
        else await kept.client.close();
      },
    };
  };
}
