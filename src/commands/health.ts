// `health`: asks a running service whether it is ready, for exec probes and compose.
import { isIPv4, isIPv6 } from 'node:net';
import { loadAdminAddress } from '../config/load.ts';
import { readStart, sendRequest } from '../http/send-request.ts';
import { hostAndPort, type TcpAddress } from '../text/listen-address.ts';
import { printable } from '../text/printable.ts';
import { messageOf } from '../text/problem.ts';
import { defaultConfigFile, defineCommand, misconfigured } from './command.ts';

const usage = `account-authz health [--config FILE]

Asks /readyz on admin of a running service and prints the state: ready, not ready, or why it cannot be reached.

  --config FILE   the configuration of the service, ${defaultConfigFile} if not given; only admin is read

Example: account-authz health --config config.yaml

Exit code: 0 ready, 1 not ready, not reached or usage error.
`;

const maxDetailsLength = 512;

/** Without an answer until then, the service counts as not reached. */
const deadlineMs = 3000;

export const command = defineCommand({
  name: 'health',
  usage,
  options: { config: { type: 'string', default: defaultConfigFile } },
  async run({ values, io }) {
    const { config } = values;
    const admin = await loadAdminAddress(config);
    if (admin.kind === 'misconfiguration') throw misconfigured(config, admin);
    const state = await askReadiness(admin);
    io.stdout.write(`${state}\n`);
    return state === 'ready' ? 0 : 1;
  },
});

async function askReadiness({ host, port }: TcpAddress): Promise<string> {
  const signal = AbortSignal.timeout(deadlineMs);
  try {
    const answer = await sendRequest(new URL(`http://${hostAndPort(reachable(host), port)}/readyz`), { signal });
    // The whole body has a state for each issuer.
    const body = await readStart(answer, startLength, signal);
    const state = answers.get(`${answer.statusCode} ${body.toString('latin1')}`);
    return state ?? notReached(`/readyz answers ${answer.statusCode}, and not as account-authz does`);
  } catch (error) {
    return notReached(signal.aborted ? '/readyz does not answer' : messageOf(error));
  }
}

/** By status and beginning of the body: another program on this port may answer 200 too. */
const answers = new Map<string, string>([
  ['200 {"ready":true,', 'ready'],
  ['503 {"ready":false', 'not ready'],
]);

const startLength = '{"ready":true,'.length;

/** Loopback in the place of every address. */
function reachable(host: string): string {
  if (isIPv4(host)) return host === '0.0.0.0' ? '127.0.0.1' : host;
  return isIPv6(host) && new URL(`http://[${host}]`).hostname === '[::]' ? '::1' : host;
}

function notReached(details: string): string {
  return `not reached: ${printable(details, maxDetailsLength)}`;
}
