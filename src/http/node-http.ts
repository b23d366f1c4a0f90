// The values of `node:http`, and the final answer to a request.
import type { ClientRequest, IncomingMessage } from 'node:http';
import { FetchProblem } from './network-problem.ts';

// An ES import reads every export of the module, and to read WebSocket makes Node load its copy of undici: 7 MB of memory in each instance
// (docs/dev/performance.md).
export const { Agent, createServer, request } = process.getBuiltinModule('node:http');

/** Sends a request without a body. Rejects with the error of Node, or where nothing of ours can follow: a switch of protocols. */
export function finalAnswer(sent: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const settle = (answer: IncomingMessage): void => {
      // A body that is not read to its end emits an error.
      answer.on('error', () => undefined);
      if (answer.statusCode === 101) {
        answer.destroy();
        reject(Object.assign(new FetchProblem('status 101 Switching Protocols'), { code: 'status 101' }));
      } else resolve(answer);
    };
    // Without a listener for `upgrade`, Node drops such an answer without an event, and nothing would keep the process alive.
    sent.once('response', settle).once('connect', settle).once('upgrade', settle);
    sent.on('error', reject).end();
  });
}
