// `drain`: the preStop helper. Makes Envoy fail its health checks and refuse new connections, then waits until the open ones end.
import { setTimeout as sleep } from 'node:timers/promises';
import { type CommandIo, helpOption, parseCommandLine, usageError } from './command.ts';

const usage = `account-authz drain [options]

Makes Envoy fail its health checks and drain its listeners, then waits until its connections are closed.

  --envoy-admin URL   the admin interface of Envoy, http://127.0.0.1:9901 if not given
  --seconds N         longest time to wait, 0 to 3600, 15 if not given

Example: account-authz drain --seconds 20

Exit code: 0, also if Envoy does not answer (with a warning); 1 usage error.
`;

/** The time limit of one request to the admin, and the pause between two. */
const answerMs = 2000;
const pauseMs = 200;

export async function drain(args: readonly string[], io: CommandIo): Promise<number> {
  const options = {
    'envoy-admin': { type: 'string', default: 'http://127.0.0.1:9901' },
    seconds: { type: 'string', default: '15' },
    ...helpOption,
  } as const;
  const parsed = parseCommandLine({ name: 'drain', usage, args, options }, io);
  if (parsed.kind === 'end') return parsed.code;
  const { 'envoy-admin': admin, seconds } = parsed.values;
  const fail = (problem: string): number => usageError(io, 'drain', problem);
  if (!/^\d{1,4}$/.test(seconds) || Number(seconds) > 3600)
    return fail('--seconds must be a whole number from 0 to 3600');
  if (!URL.canParse(admin) || new URL(admin).protocol !== 'http:')
    return fail('--envoy-admin must be an http URL such as http://127.0.0.1:9901');

  const endMs = performance.now() + Number(seconds) * 1000;
  const request = createAdminRequest(admin);
  const failed = await request('POST', '/healthcheck/fail');
  const drained = await request('POST', '/drain_listeners?graceful');
  if (failed === undefined || drained === undefined) {
    io.stderr.write(
      'account-authz drain: Envoy did not answer, so nothing is drained: check that --envoy-admin is its admin interface\n',
    );
    return 0;
  }
  let open = await openConnections(request);
  while (open !== undefined && open > 0 && performance.now() < endMs) {
    await sleep(pauseMs);
    open = await openConnections(request);
  }
  // If the admin no longer answers, Envoy has ended and nothing is open.
  io.stdout.write(open ? `${open} connections are still open\n` : 'no connection is open\n');
  return 0;
}

type AdminRequest = (method: 'GET' | 'POST', path: string) => Promise<string | undefined>;

function createAdminRequest(admin: string): AdminRequest {
  return async (method, path) => {
    try {
      const signal = AbortSignal.timeout(answerMs);
      const response = await fetch(new URL(path, admin), { method, signal, redirect: 'error' });
      const text = await response.text();
      return response.ok ? text : undefined;
    } catch {
      return undefined;
    }
  };
}

// Counts all listeners but the admin's own. Not `server.total_connections`, which Envoy updates only every five seconds.
async function openConnections(request: AdminRequest): Promise<number | undefined> {
  const text = await request('GET', '/stats?filter=^listener\\..*downstream_cx_active$');
  if (text === undefined) return undefined;
  const gauges = text.matchAll(/^listener\.(.+)\.downstream_cx_active: (\d+)$/gm);
  return Array.from(gauges, ([, name = '', count]) => (/^admin|\.worker_\d+$/.test(name) ? 0 : Number(count))).reduce(
    (sum, count) => sum + count,
    0,
  );
}
