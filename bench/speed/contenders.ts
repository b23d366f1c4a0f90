// Who is measured, by name and in the order of the tables.
import { join } from 'node:path';
import { freePorts } from '../../test/support/envoy.ts';
import type { Contender, Family, SetName } from './contender.ts';
import { type BenchLab, cacheDirectory, projectDirectory } from './lab.ts';
import { type ProductOptions, startProduct } from './product.ts';
import { knownToken } from './request-sets.ts';
import { checkCall, checkCallBlocks } from './requests.ts';
import { ask, type ServerCommand, startServerProcess } from './server-process.ts';
import { audience, issuer } from './tokens.ts';

export async function makeContenders(lab: BenchLab): Promise<Contender[]> {
  const known = checkCall(await knownToken(lab.tokens));
  const allow = await allowBytes(lab);
  const answerFile = await lab.file('allow.bin', allow);

  const product = (name: string, title: string, set: SetName, options: ProductOptions = {}): Contender => ({
    name,
    title,
    family: 'product',
    set,
    startsAnew: set === 'new',
    start: () => startProduct(lab, known, options),
  });
  const peer = (
    name: string,
    title: string,
    family: Family,
    set: SetName,
    command: (options: string) => ServerCommand,
  ): Contender => ({
    name,
    title,
    family,
    set,
    startsAnew: set === 'new',
    async start() {
      const [port = 0] = await freePorts(1);
      const protoDirectory = join(projectDirectory, 'proto');
      const options = { port, protoDirectory, answerFile, issuer, audience, jwksUrl: lab.issuer.jwksUrl };
      const probe = { target: { port }, shared: checkCallBlocks, request: known, expected: 'allow' } as const;
      const server = await startServerProcess(command(JSON.stringify(options)), lab.cores?.server, probe);
      return { ...server, port };
    },
  });
  const node =
    (file: string) =>
    (options: string): ServerCommand => ({ command: lab.node, args: [join(cacheDirectory, 'peers', file), options] });

  return [
    peer('http2', 'node:http2, does nothing', 'floor', 'known', node('http2.js')),
    peer('nothing', 'grpc-js and proto-loader, does nothing', 'floor', 'known', node('nothing.js')),
    product('known', 'account-authz, one known token', 'known'),
    product('known-logged', 'account-authz, one known token, each allow logged', 'known', { logAllowed: true }),
    product('known-as-shipped', 'account-authz, one known token, headers as in envoy.yaml', 'known-as-shipped'),
    product('rotation', 'account-authz, 10,000 known tokens in turn', 'rotation'),
    product('new', 'account-authz, every token new', 'new'),
    product('garbage', 'account-authz, no token but garbage', 'garbage'),
    product('mismatch', 'account-authz, a known token for another account', 'mismatch'),
    product('forged', 'account-authz, every signature forged', 'forged'),
  ];
}

/** The bytes that the product answers an allow with; the ones that do nothing answer the same. */
async function allowBytes(lab: BenchLab): Promise<Buffer> {
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
