// What a Node process holds after a full collection, asked of its inspector: its own figures say what it has not yet collected.
import { setTimeout as delay } from 'node:timers/promises';
import { WebSocket } from 'undici';

/** Of a process with `--inspect=127.0.0.1:PORT`. Objects on the heap, and the buffers beside it, in units of 1,048,576 bytes. */
export async function liveMegabytes(inspectorPort: number): Promise<number> {
  const targets = (await (await fetch(`http://127.0.0.1:${inspectorPort}/json/list`)).json()) as {
    webSocketDebuggerUrl: string;
  }[];
  const socket = new WebSocket(targets[0]?.webSocketDebuggerUrl ?? '');
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener('open', () => resolve());
    socket.addEventListener('error', () => reject(new Error('the inspector does not answer')));
  });
  let next = 0;
  const ask = (method: string, params: object = {}): Promise<{ readonly result?: { readonly value?: unknown } }> => {
    const id = ++next;
    return new Promise(resolve => {
      const listen = ({ data }: { data: unknown }): void => {
        const message = JSON.parse(String(data)) as { id?: number; result: { result?: { value?: unknown } } };
        if (message.id !== id) return;
        socket.removeEventListener('message', listen);
        resolve(message.result);
      };
      socket.addEventListener('message', listen);
      socket.send(JSON.stringify({ id, method, params }));
    });
  };
  try {
    // Twice: what the first one finalizes, the second one frees.
    for (let turn = 0; turn < 2; turn++) {
      await ask('HeapProfiler.collectGarbage');
      await delay(50);
    }
    const expression = '(memory => memory.heapUsed + memory.external)(process.memoryUsage())';
    const { result } = await ask('Runtime.evaluate', { expression, returnByValue: true });
    return Number(result?.value) / 1_048_576;
  } finally {
    socket.close();
  }
}
