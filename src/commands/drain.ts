// `drain`: the preStop helper. Makes Envoy unready, so that each answer closes its connection, and waits until all are closed.
// The kubelet runs preStop before a liveness restart too, so it does only what `serve --envoy-admin` takes back: no /drain_listeners.
import { setTimeout as sleep } from 'node:timers/promises';
import { askEnvoyAdmin, defaultEnvoyAdmin, envoyAdminRule, parseEnvoyAdmin } from '../http/envoy-admin.ts';
import { CommandError, defineCommand } from './command.ts';

const usage = `account-authz drain [options]

Makes Envoy unready (POST /healthcheck/fail): it closes each connection with the answer in flight. Then waits until all are closed.
After a restart of account-authz alone, serve --envoy-admin makes Envoy ready again.

  --envoy-admin URL   the admin interface of Envoy, ${defaultEnvoyAdmin} if not given
  --seconds N         longest time to wait, 0 to 3600, 15 if not given

Example: account-authz drain --seconds 20

Exit code: 0, also if Envoy does not answer (with a warning); 1 usage error.
`;

/** The time limit of one request to the admin, and the pause between two. */
const timeoutMs = 2000;
const pauseMs = 200;

export const command = defineCommand({
  name: 'drain',
  usage,
  options: {
    'envoy-admin': { type: 'string', default: defaultEnvoyAdmin },
    seconds: { type: 'string', default: '15' },
  },
  async run({ values, io }) {
    const { seconds } = values;
    const admin = parseEnvoyAdmin(values['envoy-admin']);
    if (!/^\d{1,4}$/.test(seconds) || Number(seconds) > 3600)
      throw new CommandError('--seconds must be a whole number from 0 to 3600');
    if (admin === undefined) throw new CommandError(envoyAdminRule);

    const endMs = performance.now() + Number(seconds) * 1000;
    const told = await askEnvoyAdmin({ admin, method: 'POST', path: '/healthcheck/fail', timeoutMs });
    if (told.kind === 'problem') {
      io.stderr.write(
        `account-authz drain: Envoy did not answer (${told.problem}), so nothing is drained: check that --envoy-admin is its admin interface\n`,
      );
      return 0;
    }
    const ask = () => {
      const leftMs = Math.ceil(endMs - performance.now());
      return openConnections(admin, Math.max(pauseMs, Math.min(timeoutMs, leftMs)));
    };
    let open = await ask();
    // An answer that is late or missing says nothing: Envoy may be busy with the connections that remain.
    while (open !== 0 && performance.now() < endMs) {
      await sleep(pauseMs);
      open = await ask();
    }
    if (open === undefined) io.stderr.write('account-authz drain: Envoy did not say how many connections are open\n');
    else io.stdout.write(open === 0 ? 'no connection is open\n' : `${open} connections are still open\n`);
    return 0;
  },
});

/**
 * Undefined if the admin does not say; 0 if nothing listens there any more: Envoy has ended. Counts all listeners but the admin's own.
 * Not `server.total_connections`, which Envoy updates only every five seconds.
 */
async function openConnections(admin: URL, timeoutMs: number): Promise<number | undefined> {
  const path = '/stats?filter=^listener\\..*downstream_cx_active$';
  const stats = await askEnvoyAdmin({ admin, method: 'GET', path, timeoutMs });
  if (stats.kind === 'problem') return stats.problem === 'ECONNREFUSED' ? 0 : undefined;
  const gauges = stats.text.matchAll(/^listener\.(.+)\.downstream_cx_active: (\d+)$/gm);
  return Array.from(gauges, ([, name = '', count]) => (/^admin|\.worker_\d+$/.test(name) ? 0 : Number(count))).reduce(
    (sum, count) => sum + count,
    0,
  );
}
