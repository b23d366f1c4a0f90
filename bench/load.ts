// Load on one server by the generator, a program of its own that is the same for every contender (bench/generator/), and single requests.
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { type ClientHttp2Session, connect } from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const project = fileURLToPath(new URL('../', import.meta.url));
export const cache = join(project, '.cache', 'bench');
const run = promisify(execFile);

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

export interface Load extends Omit<Request, 'body'> {
  /** Framed gRPC messages, sent in turn; without it each request is a GET. */
  readonly callsFile?: string;
  readonly seconds: number;
  /** Not measured. */
  readonly warmSeconds: number;
  /** Without it each answer makes the next request. */
  readonly perSecond?: number;
  /** The processes that serve. */
  readonly pids: readonly number[];
  /** The lengths of the right answers; another one ends the bench. */
  readonly answerBytes: readonly number[];
}

/** As Envoy does it: few connections, many calls at a time on each. */
const connections = 4;
const callsOnEach = 16;

/** The message that comes next, by server and file: a new token must not come again while the server may have it. */
const offsets = new Map<string, number>();

/** `address`: `HOST:PORT` or `unix:PATH`. */
export async function load(address: string, { path, headers, callsFile, ...rest }: Load): Promise<Figures> {
  const isUnix = address.startsWith('unix:');
  const method = callsFile === undefined ? 'GET' : 'POST';
  const place = `${address} ${callsFile}`;
  const options = {
    ...rest,
    callsFile,
    offset: offsets.get(place) ?? 0,
    network: isUnix ? 'unix' : 'tcp',
    address: isUnix ? address.slice('unix:'.length) : address,
    headers: Object.entries({ ':method': method, ':scheme': 'http', ':path': path, ...headers }),
    connections,
    calls: callsOnEach,
  };
  const { stdout } = await run(await generator(), [JSON.stringify(options)]);
  const measured = JSON.parse(stdout) as Readonly<
    Record<'Answered' | 'Milliseconds' | 'CPUMicroseconds' | 'Offset', number>
  >;
  offsets.set(place, measured.Offset);
  if (measured.Answered === 0) throw new Error(`${address} answers nothing`);
  return {
    perSecond: (measured.Answered / measured.Milliseconds) * 1000,
    cpuMicrosecondsPerCall: measured.CPUMicroseconds / measured.Answered,
    serverShare: measured.CPUMicroseconds / 1000 / measured.Milliseconds,
  };
}

let built: Promise<string> | undefined;

function generator(): Promise<string> {
  built ??= goProgram('generator', '.');
  return built;
}

/** Builds a package of a Go module in bench/. The first time this downloads the modules of its go.sum and takes minutes; Go keeps the result. */
export async function goProgram(module: string, packagePath: string): Promise<string> {
  const output = join(cache, module.replaceAll('/', '-'));
  const env = { ...process.env, GOTOOLCHAIN: 'local', GOFLAGS: '-mod=readonly', CGO_ENABLED: '0' };
  const options = { cwd: join(project, 'bench', module), env, timeout: 30 * 60_000 };
  await run('go', ['build', '-o', output, packagePath], options);
  return output;
}

/** One request on a connection of its own. */
export async function ask(address: string, { path, headers, body }: Request): Promise<Answer> {
  const socket = address.startsWith('unix:') ? { createConnection: () => connectSocket(address.slice(5)) } : {};
  const session = connect(socket.createConnection === undefined ? `http://${address}` : 'http://localhost', socket);
  // A failed exchange tells.
  session.on('error', () => undefined);
  try {
    await once(session, 'connect');
    return await exchange(session, { path, headers, ...(body && { body }) });
  } finally {
    session.destroy();
  }
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
