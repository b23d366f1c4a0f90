// Places one pod on this machine: an address in 127.0.0.0/8 instead of the pod IP, a folder instead of its volumes, and
// local programs instead of those in the images. Everything else stays as in the manifests.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { programArguments } from '../../lab/compiled.ts';
import { envoyBinary } from '../../lab/envoy.ts';
import { freePorts } from '../../lab/free-ports.ts';
import type { PlannedContainer, PodPlan } from './pod-plan.ts';

export interface Placement {
  /** Replaces the pod IP and the loopback address of its network namespace. */
  readonly address: string;
  /** The same port if it is free here. */
  portOf(port: number): number;
  commandOf(container: PlannedContainer): Promise<readonly string[]>;
  /** A command in a container, as written in an exec hook. */
  execOf(container: PlannedContainer, command: readonly string[]): readonly string[];
  remove(): Promise<void>;
}

/** Edits a mounted file last; sets what an overlay leaves to its user, the authentication service. */
export type EditFile = (name: string, text: string) => string;

const demoProgram = 'demo/serve.ts';
const project = fileURLToPath(new URL('../../', import.meta.url));
const anyLocalAddress = /\b(?:0\.0\.0\.0|127\.0\.0\.1)\b(?:(:|, port_value: )(\d+))?/g;

export async function createPlacement(plan: PodPlan, address: string, edit: EditFile): Promise<Placement> {
  const directory = await mkdtemp(join(tmpdir(), 'rehearsal-'));
  const ports = await chosenPorts(plan, address);
  const portOf = (port: number): number => ports.get(port) ?? port;

  // Addresses first: no path looks like an address.
  const addressed = (text: string): string =>
    text.replaceAll(anyLocalAddress, (_, separator: string | undefined, port: string | undefined) =>
      separator === undefined ? address : `${address}${separator}${portOf(Number(port))}`,
    );
  const placed = ({ mounts }: Pick<PlannedContainer, 'mounts'>, text: string): string =>
    mounts.reduce((result, { path, volume }) => result.replaceAll(path, join(directory, volume)), addressed(text));

  for (const { name, files } of plan.volumes) {
    await mkdir(join(directory, name), { recursive: true });
    const mounting = plan.containers.filter(({ mounts }) => mounts.some(({ volume }) => volume === name));
    for (const [file, text] of Object.entries(files)) {
      const local = mounting.reduce((result, container) => placed(container, result), text);
      await writeFile(join(directory, name, file), edit(file, local));
    }
  }
  return {
    address,
    portOf,
    commandOf: container =>
      programOf(
        container,
        container.args.map(argument => placed(container, argument)),
      ),
    execOf(container, [program = '', ...rest]) {
      const command = [
        program === '/nodejs/bin/node' ? process.execPath : program,
        ...rest.map(argument => placed(container, argument).replace(/^\/app\//, project)),
      ];
      // Its default is the pod's loopback address.
      const needsAdmin = command.includes('drain') && !command.includes('--envoy-admin');
      return needsAdmin ? [...command, '--envoy-admin', `http://${address}:${portOf(9901)}`] : command;
    },
    remove: () => rm(directory, { recursive: true, force: true }),
  };
}

/** The entrypoint of the image with the arguments of the container. Node before 22.18 does not run TypeScript by itself. */
async function programOf(
  { name, image }: PlannedContainer,
  [first = '', ...rest]: readonly string[],
): Promise<readonly string[]> {
  const repository = image
    .split('/')
    .at(-1)
    ?.replace(/[:@].*$/, '');
  switch (repository) {
    case 'account-authz':
      return [process.execPath, join(project, 'dist', 'main.js'), first, ...rest];
    case 'account-authz-demo':
      if (first !== demoProgram) break;
      return [process.execPath, ...programArguments(demoProgram), ...rest];
    case 'envoy':
      return [await envoyBinary(), first, ...rest];
  }
  throw new Error(`${name} has the image ${image} and runs ${first}, which a rehearsal does not know`);
}

/** Ports of the plan that are in use on this machine, on any address, each with a free replacement. */
async function chosenPorts(plan: PodPlan, address: string): Promise<ReadonlyMap<number, number>> {
  const texts = [
    ...plan.volumes.flatMap(({ files }) => Object.values(files)),
    ...plan.containers.flatMap(({ args }) => args),
  ];
  const named = texts.flatMap(text => Array.from(text.matchAll(anyLocalAddress), ([, , port]) => Number(port ?? 0)));
  const ports = [...new Set(named)].filter(port => port !== 0);
  const inUse = (await Promise.all(ports.map(async port => ((await isFree(address, port)) ? [] : [port])))).flat();
  const replacements = await freePorts(inUse.length);
  return new Map(inUse.map((port, index) => [port, replacements[index] ?? port]));
}

function isFree(address: string, port: number): Promise<boolean> {
  return new Promise(resolve => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, address, () => server.close(() => resolve(true)));
  });
}
