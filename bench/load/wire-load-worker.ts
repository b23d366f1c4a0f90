// The child process of wire-load-process.ts.
import { createKeptConnections } from './kept-connections.ts';
import { runClosedLoop, runOpenLoop, type Source } from './wire-load.ts';
import type { WireLoadOrder, WireLoadReport } from './wire-load-process.ts';

const sources = new Map<string, Source>();
const connect = createKeptConnections();

process.on('disconnect', () => process.exit(1));
process.on('message', (order: WireLoadOrder) => {
  execute(order).then(reply, (error: unknown) =>
    reply({ kind: 'fault', message: error instanceof Error ? error.message : String(error) }),
  );
});

async function execute(order: WireLoadOrder): Promise<WireLoadReport> {
  switch (order.kind) {
    case 'define':
      sources.set(order.name, { set: withBuffers(order.set), next: 0 });
      return { kind: 'taken' };
    case 'closed':
      return {
        kind: 'figures',
        figures: await runClosedLoop(runOf(order), sourceOf(order.set), order.inFlight, connect),
      };
    case 'open': {
      const lanes = order.lanes.map(({ set, perSecond }) => ({ source: sourceOf(set), perSecond }));
      return { kind: 'figures', figures: await runOpenLoop(runOf(order), lanes, connect) };
    }
  }
}

function sourceOf(name: string): Source {
  const source = sources.get(name);
  if (source === undefined) throw new Error(`no requests are defined under the name ${name}`);
  return source;
}

function runOf({ run }: Extract<WireLoadOrder, { kind: 'closed' | 'open' }>): typeof run {
  return { ...run, shared: { first: Buffer.from(run.shared.first), later: Buffer.from(run.shared.later) } };
}

// IPC may turn Buffers into plain Uint8Arrays.
function withBuffers(set: Source['set']): Source['set'] {
  return {
    ...set,
    requests: set.requests.map(({ before, after, body }) => ({
      before: Buffer.from(before),
      after: Buffer.from(after),
      body: body === undefined ? undefined : Buffer.from(body),
    })),
  };
}

function reply(report: WireLoadReport): void {
  process.send?.(report);
}
