// `health`: asks a running service for its health over gRPC, for exec probes and compose.

import { Agent, get } from 'node:http';
import { Client } from '@grpc/grpc-js';
import { healthService } from '../envoy/proto-files.ts';
import { authorizationServiceName, type HealthCheckResponseMessage, servingStatus } from '../envoy/protocol.ts';
import { hostAndPort, type ListenAddress, type TcpAddress } from '../text/listen-address.ts';
import { printable } from '../text/printable.ts';
import { type CommandIo, helpOption, parseCommandLine, usageError } from './command.ts';
import { type GrpcTarget, loadHealthTarget } from './health-target.ts';

const usage = `account-authz health [options]

Asks a running service for its gRPC health status and prints it.

  --address ADDRESS    HOST:PORT or unix:PATH, 127.0.0.1:9191 if not given
  --service NAME       the gRPC service to ask about, the whole server if not given
  --ca FILE            CA certificates that the server's certificate must chain to (PEM)
  --server-name NAME   name in the server's certificate, the host of the address if not given
  --cert FILE          client certificate (PEM), with --key
  --key FILE           its key (PEM)
  --config FILE        take address and TLS from this configuration; the options above still apply

With --ca, --server-name or --cert the connection is TLS.
With --config it is TLS if the configuration has tls, and the server must present the certificate of tls.certFile. If the
configuration has tls.clientCaFile and there is no --cert, the command asks /readyz on admin, which reports the same state.

Example: account-authz health --config config.yaml

Exit code: 0 serving, 1 not serving, not reached or usage error.
`;

const maxDetailsLength = 512;

/** Without an answer until then, the service counts as not serving. */
const deadlineMs = 3000;

const statusWords = new Map(
  Object.entries({
    SERVING: servingStatus.serving,
    NOT_SERVING: servingStatus.notServing,
    SERVICE_UNKNOWN: servingStatus.serviceUnknown,
    UNKNOWN: servingStatus.unknown,
  }).map(([word, code]) => [code as number, word]),
);

export async function health(args: readonly string[], io: CommandIo): Promise<number> {
  const options = {
    address: { type: 'string' },
    service: { type: 'string', default: '' },
    ca: { type: 'string' },
    cert: { type: 'string' },
    key: { type: 'string' },
    'server-name': { type: 'string' },
    config: { type: 'string' },
    ...helpOption,
  } as const;
  const parsed = parseCommandLine({ name: 'health', usage, args, options }, io);
  if (parsed.kind === 'end') return parsed.code;
  const { values } = parsed;
  const fail = (problem: string): number => usageError(io, 'health', problem.trimEnd());
  const target = await loadHealthTarget(values);
  if (target.kind === 'problem') return fail(target.problem);
  if (target.kind === 'readyz' && !serviceNames.has(values.service)) {
    return fail('--service needs --cert and --key here: the configuration has tls.clientCaFile');
  }
  const word = target.kind === 'grpc' ? await checkHealth(target, values.service) : await checkReadiness(target.admin);
  io.stdout.write(`${word}\n`);
  return word === 'SERVING' ? 0 : 1;
}

const serviceNames: ReadonlySet<string> = new Set(['', authorizationServiceName]);

function targetOf(address: ListenAddress): string {
  if (address.kind === 'unix') return `unix:${address.path}`;
  return `dns:///${hostAndPort(address.host, address.port)}`;
}

function checkHealth({ address, channel, serverName }: GrpcTarget, service: string): Promise<string> {
  const { path, requestSerialize, responseDeserialize } = healthService.Check;
  const client = new Client(targetOf(address), channel, { 'grpc.ssl_target_name_override': serverName });
  return new Promise(resolve => {
    const deadline = Date.now() + deadlineMs;
    client.makeUnaryRequest<{ service: string }, HealthCheckResponseMessage>(
      path,
      requestSerialize,
      responseDeserialize,
      { service },
      { deadline },
      (error, answer) => {
        client.close();
        if (error === null || error === undefined)
          resolve(statusWords.get(answer?.status ?? servingStatus.unknown) ?? 'UNKNOWN');
        else resolve(notReached(error.details));
      },
    );
  });
}

/** A new agent, because the global one may use a proxy. */
function checkReadiness({ host, port }: TcpAddress): Promise<string> {
  return new Promise(resolve => {
    const signal = AbortSignal.timeout(deadlineMs);
    const request = get({ host, port, path: '/readyz', signal, agent: new Agent() }, response => {
      response.resume();
      const { statusCode = 0 } = response;
      const word = statusCode === 200 ? 'SERVING' : statusCode === 503 ? 'NOT_SERVING' : undefined;
      resolve(word ?? notReached(`/readyz answers ${statusCode}`));
    });
    request.on('error', error => resolve(notReached(signal.aborted ? '/readyz does not answer' : error.message)));
  });
}

function notReached(details: string): string {
  return `not reached: ${printable(details, maxDetailsLength)}`;
}
