// The contenders, by name and in the order of the tables.
import { createPublicKey } from 'node:crypto';
import { basename, join } from 'node:path';
import { freePorts } from '../../lab/free-ports.ts';
import type { Built, Peers } from './build-peers.ts';
import type { AbsentContender, Contender, SetName } from './contender.ts';
import { type BenchLab, projectDirectory } from './lab.ts';
import type { ProgramCommand } from './pinned-process.ts';
import { type ProductOptions, startProduct } from './product.ts';
import { knownToken } from './request-sets.ts';
import { checkCall, checkCallBlocks } from './requests.ts';
import { ask, startServerProcess } from './server-process.ts';
import { audience, issuer } from './tokens.ts';

export interface Field {
  readonly contenders: readonly Contender[];
  readonly absent: readonly AbsentContender[];
  /** The CheckResponse of the product's allow, which the do-nothing services answer too. */
  readonly allow: Buffer;
}

/** Contenders that need Go. */
export const goContenders: readonly string[] = ['go-jwt', 'opa', 'authorino'];

type Command = (path: string, ports: readonly [port: number, other: number]) => ProgramCommand;

/** `beside`: the folder of another checkout, built. */
export async function makeField(lab: BenchLab, peers: Peers, beside: string | undefined): Promise<Field> {
  const known = checkCall(await knownToken(lab.tokens));
  const allow = await allowOf(lab);
  const [answerFile, opaData] = await Promise.all([
    lab.file('allow.bin', allow),
    lab.file('data.json', JSON.stringify({ bench: opaSettings(lab) })),
  ]);
  const sources = join(projectDirectory, 'bench', 'peers');

  const product = (name: string, title: string, set: SetName, options: ProductOptions = {}): Contender => ({
    ...{ name, title, family: 'product', set, isCoarse: false },
    start: () => startProduct(lab, known, options),
  });

  const other = (
    who: Pick<Contender, 'name' | 'title' | 'family'> & { readonly isCoarse?: boolean },
    built: Built,
    command: Command,
  ): Contender | AbsentContender => {
    if (built.kind === 'absent') return { name: who.name, title: who.title, reason: built.reason };
    return {
      ...{ set: 'known', isCoarse: false, ...who },
      async start() {
        const [port = 0, otherPort = 0] = await freePorts(2);
        const probe = { target: { port }, shared: checkCallBlocks, request: known, expected: 'allow' } as const;
        const server = await startServerProcess(command(built.path, [port, otherPort]), lab.cores?.server, probe);
        return { ...server, target: probe.target };
      },
    };
  };

  /** The JSON argument of each of our services. */
  const options = (port: number): string => {
    const protoDirectory = join(projectDirectory, 'proto');
    return JSON.stringify({ port, protoDirectory, answerFile, issuer, audience, jwksUrl: lab.issuer.jwksUrl });
  };
  const node: Command = (path, [port]) => {
    const { node: command, flags, environment } = lab.runtime;
    return { command, args: [...flags, join(path, 'nothing.js'), options(port)], environment };
  };
  const goJwt: Command = (path, [port]) => ({ command: join(path, 'jwt'), args: [options(port)] });
  const opa: Command = (command, [port, otherPort]) => {
    const plugin = 'plugins.envoy_ext_authz_grpc';
    const settings = [`${plugin}.skip-request-body-parse=true`, `${plugin}.addr=127.0.0.1:${port}`];
    return {
      command,
      args: [
        ...['run', '--server', '--addr', `127.0.0.1:${otherPort}`, '--skip-version-check', '--log-level', 'error'],
        '--optimize-store-for-read-speed',
        ...[...settings, `${plugin}.path=envoy/authz/allow`].flatMap(setting => ['--set', setting]),
        ...[join(sources, 'opa', 'policy.rego'), opaData],
      ],
    };
  };
  const authorino: Command = (command, [port]) => ({
    command,
    args: [`127.0.0.1:${port}`, join(sources, 'authorino', 'auth-config.yaml'), lab.issuer.url],
  });

  const built: Built = { kind: 'built', path: peers.node };
  const floor = { family: 'floor' } as const;
  const peer = { family: 'peer' } as const;
  const lines = [
    other({ name: 'nothing', title: 'a gRPC service in Node that decides nothing', ...floor }, built, node),
    product('known', 'account-authz, one known token', 'known'),
    ...(beside === undefined
      ? []
      : [
          {
            ...product('known-beside', `account-authz of ${basename(beside)}, one known token`, 'known', {
              checkout: beside,
            }),
            isUnexamined: true,
          },
        ]),
    product('known-unix', 'account-authz, one known token over a Unix socket', 'known', { over: 'unix' }),
    product('known-mtls', 'account-authz, one known token over mutual TLS', 'known', { over: 'mtls' }),
    product('rotation', 'account-authz, 10,000 known tokens in turn', 'rotation'),
    product('new', 'account-authz, every token new', 'new'),
    product('forged', 'account-authz, refuses forged signatures', 'forged'),
    other({ name: 'go-jwt', title: 'a Go service that verifies each token', ...peer }, peers.go, goJwt),
    other({ name: 'opa', title: 'opa-envoy-plugin, the same policy in Rego', ...peer }, peers.opa, opa),
    other(
      { name: 'authorino', title: 'Authorino, the same policy', ...peer, isCoarse: true },
      peers.authorino,
      authorino,
    ),
  ];
  return {
    contenders: lines.filter(line => 'start' in line),
    absent: lines.filter(line => 'reason' in line),
    allow,
  };
}

async function allowOf(lab: BenchLab): Promise<Buffer> {
  const known = checkCall(await knownToken(lab.tokens));
  const product = await startProduct(lab, known);
  try {
    const { message } = await ask({ target: product.target, shared: checkCallBlocks, request: known });
    if (message === undefined) throw new Error('the product has not answered');
    return message.subarray(5);
  } finally {
    await product.stop();
  }
}

/** Keys by kid as PEM. */
function opaSettings({ tokens: { publicJwk } }: BenchLab): Readonly<Record<string, unknown>> {
  const pem = createPublicKey({ key: publicJwk, format: 'jwk' }).export({ type: 'spki', format: 'pem' });
  return { keys: { [publicJwk.kid]: { alg: publicJwk.alg, pem } }, issuer, audience };
}
