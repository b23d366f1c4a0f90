// `health`: asks a running service over gRPC, for exec probes and compose.

import { readFile } from 'node:fs/promises';
import { type ChannelCredentials, Client, credentials } from '@grpc/grpc-js';
import { parseListenAddress } from '../config/listen-address.ts';
import { type HealthCheckResponseMessage, healthService, servingStatus } from '../envoy/protocol.ts';
import { type CommandIo, parseOptions } from './command.ts';

const usage = `account-authz health [options]

  --address ADDRESS   HOST:PORT or unix:PATH, 127.0.0.1:9191 if not given
  --service NAME      the service whose health is asked for; the whole server if not given
  --ca FILE           verify the server's certificate with this one (PEM); the connection is TLS then
  --cert FILE         client certificate (PEM), with --key
  --key FILE          its key (PEM)

Exit code: 0 serving, 1 not.
`;

/** Milliseconds until an unanswered question counts as "not serving". */
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
  const options = parseOptions(args, {
    address: { type: 'string', default: '127.0.0.1:9191' },
    service: { type: 'string', default: '' },
    ca: { type: 'string' },
    cert: { type: 'string' },
    key: { type: 'string' },
    help: { type: 'boolean', default: false },
  });
  const wrong = (problem: string): number => {
    io.stderr.write(`account-authz health: ${problem}\n`);
    return 1;
  };
  if (options.kind === 'usage problem') return wrong(options.problem);
  const { values } = options;
  if (values.help) {
    io.stdout.write(usage);
    return 0;
  }
  const address = parseListenAddress(values.address);
  if (address.kind === 'problem') return wrong(`--address ${address.problem}`);
  if ((values.cert === undefined) !== (values.key === undefined)) return wrong('--cert and --key go together');
  let channel: ChannelCredentials;
  try {
    channel = await channelCredentials(values.ca, values.cert, values.key);
  } catch {
    return wrong('a file of --ca, --cert or --key cannot be read or used');
  }
  const word = await ask(targetOf(address), values.service, channel);
  io.stdout.write(`${word}\n`);
  return word === 'SERVING' ? 0 : 1;
}

function targetOf(address: Exclude<ReturnType<typeof parseListenAddress>, { kind: 'problem' }>): string {
  if (address.kind === 'unix') return `unix:${address.path}`;
  return `dns:///${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`;
}

async function channelCredentials(ca?: string, cert?: string, key?: string): Promise<ChannelCredentials> {
  if (ca === undefined && cert === undefined) return credentials.createInsecure();
  const read = (file: string | undefined): Promise<Buffer | null> =>
    file === undefined ? Promise.resolve(null) : readFile(file);
  return credentials.createSsl(await read(ca), await read(key), await read(cert));
}

function ask(target: string, service: string, channel: ChannelCredentials): Promise<string> {
  const { path, requestSerialize, responseDeserialize } = healthService.Check;
  const client = new Client(target, channel);
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
        else resolve(`not reached: ${error.details}`);
      },
    );
  });
}
