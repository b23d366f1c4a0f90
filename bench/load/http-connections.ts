// Keep-alive HTTP/1.1 connections that cost the load generator as little as they can, since it shares two cores with what it
// measures: a request is one text, an answer is read up to its length and no further. For answers with a content-length only.
import { connect, type Socket } from 'node:net';

export interface HttpAnswer {
  /** 0 where the connection failed. */
  readonly status: number;
  readonly body: string;
}

export interface HttpConnections {
  /** Writes it as soon as a connection is free; `onSent` and `onAnswer` are called once each. */
  send(request: string, onSent: () => void, onAnswer: (answer: HttpAnswer) => void): void;
  close(): void;
}

interface Task {
  readonly request: string;
  readonly onSent: () => void;
  readonly onAnswer: (answer: HttpAnswer) => void;
}

const failed: HttpAnswer = { status: 0, body: '' };
const answerTimeoutMs = 20_000;

export function createHttpConnections(options: {
  readonly host: string;
  readonly port: number;
  /** All opened at once, and again as they are needed. */
  readonly max: number;
}): HttpConnections {
  const waiting: Task[] = [];
  const free: ((task: Task) => void)[] = [];
  const sockets = new Set<Socket>();

  function open(): (task: Task) => void {
    const socket = connect(options.port, options.host).setNoDelay(true).setEncoding('latin1');
    sockets.add(socket);
    let current: Task | undefined;
    let received = '';
    const begin = (task: Task): void => {
      current = task;
      socket.write(task.request, 'latin1');
      task.onSent();
    };
    const end = (answer: HttpAnswer): void => {
      const ended = current;
      current = undefined;
      ended?.onAnswer(answer);
    };
    socket.setTimeout(answerTimeoutMs, () => current !== undefined && socket.destroy());
    socket.on('error', () => undefined);
    socket.on('close', () => {
      sockets.delete(socket);
      const index = free.indexOf(begin);
      if (index !== -1) free.splice(index, 1);
      end(failed);
      const next = waiting.shift();
      if (next !== undefined) open()(next);
    });
    socket.on('data', (text: string) => {
      received = received === '' ? text : received + text;
      const headEnd = received.indexOf('\r\n\r\n');
      if (headEnd === -1) return;
      const bodyStart = headEnd + 4;
      const [, length] = /\r\ncontent-length: *(\d+)/i.exec(received.slice(0, headEnd)) ?? [];
      if (length === undefined) throw new Error('an answer without a content-length');
      const bodyEnd = bodyStart + Number(length);
      if (received.length < bodyEnd) return;
      const answer = { status: Number(received.slice(9, 12)), body: received.slice(bodyStart, bodyEnd) };
      received = received.slice(bodyEnd);
      end(answer);
      const next = waiting.shift();
      if (next === undefined) free.push(begin);
      else begin(next);
    });
    return begin;
  }

  // Before there is load: to accept a connection is work for what is measured.
  while (sockets.size < options.max) free.push(open());

  return {
    send(request, onSent, onAnswer) {
      const task = { request, onSent, onAnswer };
      const begin = free.pop() ?? (sockets.size < options.max ? open() : undefined);
      if (begin === undefined) waiting.push(task);
      else begin(task);
    },
    close() {
      for (const socket of sockets) socket.destroy();
    },
  };
}
