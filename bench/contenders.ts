// The contenders, in the order of the tables: account-authz, a service that does nothing, and peers that do the same work.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { freePorts } from '../lab/free-ports.ts';
import { cache, goProgram, project } from './load.ts';
import { audience, issuer } from './requests.ts';
import {
  askCheck,
  imageRuntime,
  type Server,
  type ServerCommand,
  startProduct,
  startServer,
  type TokenSet,
  type Workbench,
} from './workbench.ts';

export interface Contender {
  readonly name: string;
  readonly title: string;
  readonly family: 'product' | 'floor' | 'peer';
  /** What its calls carry. */
  readonly tokens: TokenSet;
  start(): Promise<Server>;
}

const run = promisify(execFile);
const peers = join(project, 'bench', 'peers');

/** `before`: a revision whose account-authz, with the flags of its image, is a contender too. */
export async function makeContenders(bench: Workbench, names: readonly string[], before: string): Promise<Contender[]> {
  const besides = async () => {
    const checkout = await checkoutOf(before);
    return { checkout, flags: (await imageRuntime(checkout)).flags };
  };
  const product = (name: string, title: string, tokens: TokenSet, socket = false): Contender[] => [
    { name, title: `account-authz, ${title}`, tokens, family: 'product', start: () => startProduct(bench, { socket }) },
  ];
  const compared = (tokens: TokenSet, title: string): Contender[] => [
    ...product(tokens, title, tokens),
    {
      name: `${tokens}-before`,
      title: `account-authz at ${before}, ${title}`,
      tokens,
      family: 'floor',
      start: async () => startProduct(bench, await besides()),
    },
  ];
  /** `command` is made when the contender starts. */
  const other = (
    who: Pick<Contender, 'name' | 'title' | 'family'> & { readonly tokens?: TokenSet },
    command: (port: number, otherPort: number) => Promise<ServerCommand>,
  ): Contender => ({
    tokens: 'known',
    ...who,
    async start() {
      const [port = 0, otherPort = 0] = await freePorts(2);
      return startServer(bench, `127.0.0.1:${port}`, await command(port, otherPort));
    },
  });
  const optionsOf = async (port: number): Promise<string> => {
    const [protoDirectory, answerFile] = [join(project, 'proto'), await answerFileOf(bench)];
    return JSON.stringify({ port, protoDirectory, answerFile, issuer, audience, jwksUrl: bench.issuer.jwksUrl });
  };
  const nothing = (flags: readonly string[]) => async (port: number) => {
    const outfile = join(cache, 'nothing.mjs');
    const common = { bundle: true, platform: 'node', format: 'esm', packages: 'external' } as const;
    await build({ ...common, entryPoints: [join(peers, 'node', 'nothing.ts')], outfile });
    const { node: command, environment } = bench.runtime;
    return { command, args: [...flags, outfile, await optionsOf(port)], environment };
  };
  const goJwt = async (port: number): Promise<ServerCommand> => ({
    command: await goProgram('peers/go', './jwt'),
    args: [await optionsOf(port)],
  });
  const contenders = [
    other(
      { name: 'nothing', title: 'a gRPC service in Node that decides nothing', family: 'floor' },
      nothing(bench.runtime.flags),
    ),
    other({ name: 'nothing-before', title: `the same with the flags of ${before}`, family: 'floor' }, async port =>
      nothing((await besides()).flags)(port),
    ),
    ...compared('known', 'one known token'),
    ...product('known-unix', 'the same over a Unix socket', 'known', true),
    ...product('rotation', '10,000 known tokens in turn', 'rotation'),
    ...compared('new', 'every token new'),
    ...compared('forged', 'refuses a forged signature'),
    other({ name: 'go-jwt', title: 'a Go service that verifies each token: one', family: 'peer' }, goJwt),
    other({ name: 'go-jwt-new', title: 'the same: every token new', family: 'peer', tokens: 'new' }, goJwt),
    other(
      { name: 'opa', title: 'opa-envoy-plugin, the same policy in Rego', family: 'peer' },
      async (port, otherPort) => {
        const { kid } = bench.tokens.publicJwk;
        const keys = { [kid]: { alg: 'RS256', pem: bench.tokens.publicPem } };
        const data = await bench.file('data.json', JSON.stringify({ bench: { keys, issuer, audience } }));
        const plugin = 'plugins.envoy_ext_authz_grpc';
        const settings = ['skip-request-body-parse=true', `addr=127.0.0.1:${port}`, 'path=envoy/authz/allow'];
        return {
          command: await goProgram('peers/opa', 'github.com/open-policy-agent/opa-envoy-plugin/cmd/opa-envoy-plugin'),
          args: [
            'run',
            '--server',
            '--addr',
            `127.0.0.1:${otherPort}`,
            '--skip-version-check',
            '--log-level',
            'error',
            '--optimize-store-for-read-speed',
            ...settings.flatMap(each => ['--set', `${plugin}.${each}`]),
            join(peers, 'opa', 'policy.rego'),
            data,
          ],
        };
      },
    ),
    other({ name: 'authorino', title: 'Authorino, the same policy', family: 'peer' }, async port => ({
      command: await goProgram('peers/authorino', '.'),
      args: [`127.0.0.1:${port}`, join(peers, 'authorino', 'auth-config.yaml'), bench.issuer.url],
    })),
  ];
  return contenders.filter(({ name }) => names.length === 0 || names.includes(name));
}

let answerFile: Promise<string> | undefined;

/** The product's allow, which the service that does nothing answers too. */
function answerFileOf(bench: Workbench): Promise<string> {
  answerFile ??= (async () => {
    const server = await startProduct(bench);
    const { message } = await askCheck(server.address, bench.tokens.good[0]);
    await server.stop();
    return bench.file('allow.bin', message);
  })();
  return answerFile;
}

/** The folder of a revision, unpacked and built with the packages of this one. */
async function checkoutOf(revision: string): Promise<string> {
  const { stdout } = await run('git', ['rev-parse', '--short', `${revision}^{commit}`], { cwd: project });
  const folder = join(cache, `commit-${stdout.trim()}`);
  if (existsSync(join(folder, 'dist', 'main.js'))) return folder;
  await mkdir(folder, { recursive: true });
  await run('git', ['archive', '--output', `${folder}.tar`, stdout.trim()], { cwd: project });
  await run('tar', ['-xf', `${folder}.tar`, '-C', folder]);
  await symlink(join(project, 'node_modules'), join(folder, 'node_modules'));
  await run('npm', ['run', '--silent', 'build'], { cwd: folder });
  return folder;
}
