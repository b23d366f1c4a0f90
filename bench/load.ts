// Load on one server: h2load where one request repeats, node:http2 where many tokens come in turn or at a rate. Both count an answer of another length than
// the right one as wrong, and read the processor time of the measured processes.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type ClientHttp2Session, connect } from 'node:http2';
import { createInterface } from 'node:readline';
import { cpuMicroseconds } from '../lab/process-usage.ts';
import { checkPath } from './requests.ts';

export interface Figures {
  readonly perSecond: number;
  readonly cpuMicrosecondsPerCall: number;
  /** Of the measured processes' core; far below 1, something else was the bottleneck. */
  readonly serverShare: number;
}

export interface Request {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
}

export interface Answer {
  readonly status: number;
  readonly body: Buffer;
}

export const checkHeaders = {
  ':authority': 'account-authz',
  'content-type': 'application/grpc',
  te: 'trailers',
} as const;

/** As Envoy does it: few connections, many calls at a time on each. */
const connections = 4;
const callsOnEach = 16;
const h2load = process.env.H2LOAD_BIN ?? 'h2load';

/** `bodyFile`: of a gRPC call; without it a GET. `answerBytes`: the length of the right answer's body. */
export async function repeat(
  port: number,
  { path, headers }: Request,
  bodyFile: string | undefined,
  answerBytes: number,
  {
    seconds,
    warmSeconds,
    pids,
  }: { readonly seconds: number; readonly warmSeconds: number; readonly pids: readonly number[] },
): Promise<Figures> {
  const args = [
    '-D',
    String(seconds),
    `--warm-up-time=${warmSeconds}`,
    '-c',
    String(connections),
    '-m',
    String(callsOnEach),
  ];
  for (const [name, value] of Object.entries(headers)) args.push('-H', `${name}: ${value}`);
  if (bodyFile !== undefined) args.push('-d', bodyFile);
  const child = spawn(h2load, [...args, `http://127.0.0.1:${port}${path}`], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = Promise.race([
    once(child, 'close'),
    once(child, 'error').then(([error]) => {
      throw new Error('h2load: install nghttp2-client (apt), or name the program in H2LOAD_BIN', { cause: error });
    }),
  ]);
  let output = '';
  let usage = usageOf(pids);
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.startsWith('Main benchmark duration is started')) usage = usageOf(pids);
    output += `${line}\n`;
  }
  const used = usageSince(usage);
  await ended;
  const [, done = NaN, succeeded = NaN] = (/(\d+) done, (\d+) succeeded/.exec(output) ?? []).map(Number);
  const [, total = NaN, headerBytes = NaN] = (/\((\d+)\) total, .*?\((\d+)\) headers/.exec(output) ?? []).map(Number);
  const [, ok = NaN] = (/^status codes: (\d+) 2xx/m.exec(output) ?? []).map(Number);
  // Beside the message, a gRPC answer has the heads of three frames and its status; answers under way at the end count in part.
  const beside = (total - headerBytes) / done - answerBytes;
  const hasLength = bodyFile === undefined || (beside > -8 && beside < 64);
  if (succeeded !== done || !(done > 0) || Math.abs(ok - done) > 2 * connections * callsOnEach || !hasLength)
    throw new Error(`not every answer was right: ${answerBytes} bytes were expected\n${output}`);
  return figures(done, seconds * 1000, used);
}

export interface InTurn {
  /** Without an end. */
  readonly calls: Iterator<Buffer>;
  readonly seconds: number;
  /** Without it each answer makes the next call. */
  readonly perSecond?: number;
  readonly pids: readonly number[];
  /** The lengths of the right answers. */
  readonly answerBytes: readonly number[];
}

export async function callInTurn(
  port: number,
  { calls, seconds, perSecond, pids, answerBytes }: InTurn,
): Promise<Figures> {
  const sessions = await Promise.all(Array.from({ length: connections }, () => connected(port)));
  let sent = 0;
  let answered = 0;
  let problem: Error | undefined;
  let isOver = false;
  const call = async (): Promise<void> => {
    const session = sessions[sent % sessions.length];
    sent += 1;
    if (session === undefined) return;
    const body: Buffer = calls.next().value;
    const answer = await exchange(session, { path: checkPath, headers: checkHeaders, body });
    answered += 1;
    if (answer.status !== 200 || !answerBytes.includes(answer.body.length))
      throw new Error(`a wrong answer of ${answer.body.length} bytes`);
  };
  const calling = async (): Promise<void> => {
    while (!isOver && problem === undefined) await call();
  };
  const fail = (error: Error): void => {
    problem = error;
  };
  const started = performance.now();
  const usage = usageOf(pids);
  const workers: Promise<void>[] = [];
  if (perSecond === undefined)
    for (let i = 0; i < connections * callsOnEach; i += 1) workers.push(calling().catch(fail));
  const pace = setInterval(() => {
    const due = perSecond === undefined ? 0 : ((performance.now() - started) / 1000) * perSecond;
    while (sent < due) workers.push(call().catch(fail));
    if (perSecond !== undefined && workers.length > 10_000) workers.splice(0, 5000);
  }, 5);
  await new Promise(resolve => setTimeout(resolve, seconds * 1000));
  isOver = true;
  clearInterval(pace);
  const [used, elapsedMs, count] = [usageSince(usage), performance.now() - started, answered];
  await Promise.all(workers);
  for (const session of sessions) session.close();
  if (problem !== undefined) throw problem;
  return figures(count, elapsedMs, used);
}

/** From the first again after the last. */
export function* endlessly(calls: readonly Buffer[]): Generator<Buffer, never> {
  for (;;) yield* calls;
}

/** One request on a connection of its own. */
export async function ask(port: number, request: Request): Promise<Answer> {
  const session = await connected(port);
  try {
    return await exchange(session, request);
  } finally {
    session.destroy();
  }
}

async function connected(port: number): Promise<ClientHttp2Session> {
  const session = connect(`http://127.0.0.1:${port}`);
  // A failed exchange tells.
  session.on('error', () => undefined);
  await once(session, 'connect');
  return session;
}

function exchange(session: ClientHttp2Session, { path, headers, body }: Request): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ':path': path, ':method': body === undefined ? 'GET' : 'POST', ...headers });
    let status = 0;
    const chunks: Buffer[] = [];
    stream.on('response', received => {
      status = Number(received[':status']);
    });
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('error', reject);
    stream.on('close', () => {
      if (status === 0) reject(new Error('no answer'));
      else resolve({ status, body: Buffer.concat(chunks) });
    });
    stream.setTimeout(10_000, () => stream.destroy(new Error('no answer within 10 s')));
    stream.end(body);
  });
}

interface Usage {
  readonly atMs: number;
  readonly pids: readonly number[];
  readonly microseconds: number;
}

function usageOf(pids: readonly number[]): Usage {
  return { atMs: performance.now(), pids, microseconds: pids.reduce((sum, pid) => sum + cpuMicroseconds(pid), 0) };
}

function usageSince({ atMs, pids, microseconds }: Usage): Usage {
  const now = usageOf(pids);
  return { atMs: now.atMs - atMs, pids, microseconds: now.microseconds - microseconds };
}

function figures(answered: number, elapsedMs: number, used: Usage): Figures {
  return {
    perSecond: (answered / elapsedMs) * 1000,
    // By the rate: h2load ends a moment after its time.
    cpuMicrosecondsPerCall: used.microseconds / ((answered / elapsedMs) * used.atMs),
    serverShare: used.microseconds / 1000 / used.atMs,
  };
}
