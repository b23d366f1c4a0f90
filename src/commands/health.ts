// `health`: asks a running service over gRPC, for exec probes and compose.

import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { checkServerIdentity, type PeerCertificate } from 'node:tls';
import { type ChannelCredentials, Client, credentials } from '@grpc/grpc-js';
import { type ListenAddress, parseListenAddress } from '../address/listen-address.ts';
import { healthService } from '../envoy/proto-files.ts';
import { type HealthCheckResponseMessage, servingStatus } from '../envoy/protocol.ts';
import { foreignText } from '../foreign-text.ts';
import { type CommandIo, parseOptions } from './command.ts';

const usage = `account-authz health [options]

  --address ADDRESS   HOST:PORT or unix:PATH, 127.0.0.1:9191 if not given
  --service NAME      the service whose health is asked for; the whole server if not given
  --ca FILE           verify the server's certificate with this one (PEM); the connection is TLS then
  --cert FILE         client certificate (PEM), with --key
  --key FILE          its key (PEM)

Exit code: 0 serving, 1 not.
`;

const maxDetailsLength = 512;

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
    channel = await channelCredentials(hostOf(address), values.ca, values.cert, values.key);
  } catch {
    return wrong('a file of --ca, --cert or --key cannot be read or used');
  }
  const word = await ask(address, values.service, channel);
  io.stdout.write(`${word}\n`);
  return word === 'SERVING' ? 0 : 1;
}

function targetOf(address: ListenAddress): string {
  if (address.kind === 'unix') return `unix:${address.path}`;
  return `dns:///${address.host.includes(':') ? `[${address.host}]` : address.host}:${address.port}`;
}

/** The name that the certificate must have: the one that gRPC takes for every Unix socket is localhost. */
function hostOf(address: ListenAddress): string {
  return address.kind === 'unix' ? 'localhost' : address.host;
}

async function channelCredentials(host: string, ca?: string, cert?: string, key?: string): Promise<ChannelCredentials> {
  if (ca === undefined && cert === undefined) return credentials.createInsecure();
  const read = (file: string | undefined): Promise<Buffer | null> =>
    file === undefined ? Promise.resolve(null) : readFile(file);
  // Whatever the name in the handshake is, see below.
  const verify = { checkServerIdentity: (_: string, peer: PeerCertificate) => checkServerIdentity(host, peer) };
  return credentials.createSsl(await read(ca), await read(key), await read(cert), verify);
}

function ask(address: ListenAddress, service: string, channel: ChannelCredentials): Promise<string> {
  const { path, requestSerialize, responseDeserialize } = healthService.Check;
  // RFC 6066 section 3: an IP address is no name to ask for in the handshake, and Node warns of one on standard error.
  const name = isIP(hostOf(address)) === 0 ? {} : { 'grpc.ssl_target_name_override': 'localhost' };
  const client = new Client(targetOf(address), channel, name);
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
        else resolve(`not reached: ${foreignText(error.details, maxDetailsLength)}`);
      },
    );
  });
}
