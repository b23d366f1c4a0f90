// Who is measured, by name and in the order of the tables.
import { createPublicKey } from 'node:crypto';
import { join } from 'node:path';
import { freePorts } from '../../test/support/envoy.ts';
import { startAuthorino } from './authorino.ts';
import type { Built, Peers } from './build-peers.ts';
import type { AbsentContender, Contender, Family, SetName } from './contender.ts';
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
  /** The CheckResponse of the product's allow, which those that do nothing answer too. */
  readonly allow: Buffer;
}

interface PeerStart {
  readonly port: number;
  /** One more port, for a peer that insists on it. */
  readonly otherPort: number;
  /** As JSON, what every peer of ours takes. */
  readonly options: string;
  readonly cachingOptions: string;
}

interface PeerLine {
  readonly name: string;
  readonly title: string;
  readonly family: Family;
  readonly set?: SetName;
  readonly built: Built;
  readonly exceptions?: readonly string[];
  command(start: PeerStart, path: string): ProgramCommand;
}

export async function makeField(lab: BenchLab, peers: Peers): Promise<Field> {
  const known = checkCall(await knownToken(lab.tokens));
  const allow = await allowOf(lab);
  const [answerFile, opaData] = await Promise.all([
    lab.file('allow.bin', allow),
    lab.file('data.json', JSON.stringify({ bench: opaSettings(lab) })),
  ]);
  const policy = join(projectDirectory, 'bench', 'peers', 'opa', 'policy.rego');

  const product = (name: string, title: string, set: SetName, options: ProductOptions = {}): Contender => ({
    name,
    title,
    family: 'product',
    set,
    start: () => startProduct(lab, known, options),
  });

  const peer = ({
    name,
    title,
    family,
    set = 'known',
    built,
    exceptions = [],
    command,
  }: PeerLine): Contender | AbsentContender => {
    if (built.kind === 'absent') return { name, title, reason: built.reason };
    return {
      name,
      title,
      family,
      set,
      exceptions,
      async start() {
        const [port = 0, otherPort = 0] = await freePorts(2);
        const protoDirectory = join(projectDirectory, 'proto');
        const options = { port, protoDirectory, answerFile, issuer, audience, jwksUrl: lab.issuer.jwksUrl };
        const told = {
          port,
          otherPort,
          options: JSON.stringify(options),
          cachingOptions: JSON.stringify({ ...options, cache: true }),
        };
        const probe = { target: { port }, shared: checkCallBlocks, request: known, expected: 'allow' } as const;
        const server = await startServerProcess(command(told, built.path), lab.cores?.server, probe);
        return { ...server, port };
      },
    };
  };

  const node = (file: string): Pick<PeerLine, 'built' | 'command'> => ({
    built: { kind: 'built', path: peers.node },
    command: ({ options }, path) => ({ command: lab.node, args: [join(path, file), options] }),
  });
  const go = (binary: string): Pick<PeerLine, 'built' | 'command'> => ({
    built: peers.go,
    command: ({ options }, path) => ({ command: join(path, binary), args: [options] }),
  });
  const opa = (...settings: readonly string[]): Pick<PeerLine, 'built' | 'command' | 'exceptions'> => ({
    built: peers.opa,
    // It reads the whole query before the policy is asked, and answers 400 itself where it cannot (envoyauth/request.go,
    // getParsedPathAndQuery).
    exceptions: ['broken parameters of other names'],
    command: ({ port, otherPort }, path) => ({
      command: path,
      args: [
        ...['run', '--server', '--addr', `127.0.0.1:${otherPort}`, '--skip-version-check', '--log-level', 'error'],
        '--optimize-store-for-read-speed',
        ...['--set', 'plugins.envoy_ext_authz_grpc.skip-request-body-parse=true'],
        ...['--set', `plugins.envoy_ext_authz_grpc.addr=127.0.0.1:${port}`],
        ...['--set', 'plugins.envoy_ext_authz_grpc.path=envoy/authz/allow'],
        ...settings.flatMap(setting => ['--set', setting]),
        ...[policy, opaData],
      ],
    }),
  });
  const authorino = (name: string, title: string, cacheSeconds?: number): Contender | AbsentContender => {
    const found = peers.authorino;
    if (found.kind === 'absent') return { name, title, reason: found.reason };
    const probe = { shared: checkCallBlocks, request: known, expected: 'allow' } as const;
    const caching = cacheSeconds === undefined ? {} : { cacheSeconds };
    return {
      name,
      title,
      family: 'peer',
      set: 'known',
      ...ofAuthorino,
      start: () => startAuthorino({ lab, tools: found.tools, probe, ...caching }),
    };
  };
  const tokenCache = 'caching.inter_query_builtin_value_cache.named.io_jwt.max_num_entries=10000';

  const lines: (Contender | AbsentContender)[] = [
    peer({ name: 'http2', title: 'node:http2, does nothing', family: 'floor', ...node('http2.js') }),
    peer({ name: 'nothing', title: 'grpc-js and proto-loader, does nothing', family: 'floor', ...node('nothing.js') }),
    peer({ name: 'go-nothing', title: 'grpc-go, does nothing', family: 'floor', ...go('nothing') }),
    product('known', 'account-authz, one known token', 'known'),
    product('known-logged', 'account-authz, one known token, each allow logged', 'known', { logAllowed: true }),
    product('known-as-shipped', 'account-authz, one known token, headers as in envoy.yaml', 'known-as-shipped'),
    product('rotation', 'account-authz, 10,000 known tokens in turn', 'rotation'),
    product('new', 'account-authz, every token new', 'new'),
    product('garbage', 'account-authz, refuses garbage', 'garbage'),
    product('mismatch', 'account-authz, refuses a known token for another account', 'mismatch'),
    product('forged', 'account-authz, refuses forged signatures', 'forged'),
    peer({ name: 'jose', title: 'grpc-js and jose, verifies each call', family: 'peer', ...node('jose.js') }),
    peer({ name: 'go-jwt', title: 'grpc-go and golang-jwt, verifies each call', family: 'peer', ...go('jwt') }),
    peer({
      name: 'go-jwt-cached',
      title: 'grpc-go and golang-jwt, verifies a token once',
      family: 'peer',
      ...go('jwt'),
      command: ({ cachingOptions }, path) => ({ command: join(path, 'jwt'), args: [cachingOptions] }),
    }),
    peer({
      name: 'rego',
      title: "grpc-go and OPA's library, the policy in Rego",
      family: 'peer',
      ...go('rego'),
      command: ({ options }, path) => ({ command: join(path, 'rego'), args: [policy, options] }),
    }),
    peer({ name: 'opa', title: 'opa-envoy-plugin, the policy in Rego', family: 'peer', ...opa() }),
    peer({ name: 'opa-cached', title: 'opa-envoy-plugin, its token cache on', family: 'peer', ...opa(tokenCache) }),
    authorino('authorino', 'Authorino, the same policy'),
    authorino('authorino-cached', 'Authorino, its cache of verified tokens on', 3600),
  ];
  return {
    contenders: lines.filter(line => 'start' in line),
    absent: lines.filter(line => 'reason' in line),
    allow,
  };
}

/** docs/performance.md says why. */
const ofAuthorino: Pick<Contender, 'exceptions' | 'limits'> = {
  exceptions: ['the scheme in another case', 'a token that expired within the tolerance'],
  limits: {
    removesHeaders: false,
    refusals: new Map([
      [400, [401, 403]],
      [401, [403]],
      [404, [401, 403]],
    ]),
    unasked: ['a percent sign that encodes nothing'],
  },
};

async function allowOf(lab: BenchLab): Promise<Buffer> {
  const known = checkCall(await knownToken(lab.tokens));
  const product = await startProduct(lab, known);
  try {
    const { message } = await ask({ target: { port: product.port }, shared: checkCallBlocks, request: known });
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
