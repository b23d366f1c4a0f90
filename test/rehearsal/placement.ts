// One pod on this machine: an address of its own in 127.0.0.0/8 in the place of the pod's, a folder in the place of its volumes, and
// the programs here in the place of those in the images. Everything else stays as the manifests have it.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { envoyBinary, freePorts } from '../support/envoy.ts';
import type { PlannedContainer, PodPlan } from './pod-plan.ts';

export interface Placement {
  /** In the place of the pod's address, and of the loopback of its network namespace. */
  readonly address: string;
  /** The same port, where it is free here. */
  portOf(port: number): number;
  commandOf(container: PlannedContainer): Promise<readonly string[]>;
  /** A command in a container, as an exec hook names it. */
  execOf(container: PlannedContainer, command: readonly string[]): readonly string[];
  remove(): Promise<void>;
}

/** Changes a mounted file last; what an overlay leaves to its user, the authentication service, is set here. */
export type EditFile = (name: string, text: string) => string;

const project = fileURLToPath(new URL('../../', import.meta.url));
const anyLocalAddress = /\b(?:0\.0\.0\.0|127\.0\.0\.1)\b(?:(:|, port_value: )(\d+))?/g;

export async function createPlacement(plan: PodPlan, address: string, edit: EditFile): Promise<Placement> {
  const directory = await mkdtemp(join(tmpdir(), 'rehearsal-'));
  const ports = await chosenPorts(plan, address);
  const portOf = (port: number): number => ports.get(port) ?? port;

  // Addresses first: no path looks like one.
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
    commandOf: async container => [
      ...(await programOf(container)),
      ...container.args.map(argument => placed(container, argument)),
    ],
    execOf(container, [program = '', ...rest]) {
      const command = [
        program === '/nodejs/bin/node' ? process.execPath : program,
        ...rest.map(argument => placed(container, argument).replace(/^\/app\//, project)),
      ];
      // Its default is the loopback of the pod.
      const told = command.includes('drain') && !command.includes('--envoy-admin');
      return told ? [...command, '--envoy-admin', `http://${address}:${portOf(9901)}`] : command;
    },
    remove: () => rm(directory, { recursive: true, force: true }),
  };
}

/** The entrypoints of the images. Node before 22.18 does not run TypeScript by itself, so it has help here. */
async function programOf({ name, image }: PlannedContainer): Promise<readonly string[]> {
  const repository = image
    .split('/')
    .at(-1)
    ?.replace(/[:@].*$/, '');
  switch (repository) {
    case 'account-authz':
      return [process.execPath, join(project, 'dist', 'main.js')];
    case 'account-authz-demo':
      return [process.execPath, '--import', 'tsx'];
    case 'envoy':
      return [await envoyBinary()];
    default:
      throw new Error(`${name} has the image ${image}, which a rehearsal does not know`);
  }
}

/** Ports of the plan that somebody else has here, on all addresses, and a free one in the place of each. */
async function chosenPorts(plan: PodPlan, address: string): Promise<ReadonlyMap<number, number>> {
  const texts = [
    ...plan.volumes.flatMap(({ files }) => Object.values(files)),
    ...plan.containers.flatMap(({ args }) => args),
  ];
  const named = texts.flatMap(text => Array.from(text.matchAll(anyLocalAddress), ([, , port]) => Number(port ?? 0)));
  const ports = [...new Set(named)].filter(port => port !== 0);
  const taken = (await Promise.all(ports.map(async port => ((await isFree(address, port)) ? [] : [port])))).flat();
  const others = await freePorts(taken.length);
  return new Map(taken.map((port, index) => [port, others[index] ?? port]));
}

function isFree(address: string, port: number): Promise<boolean> {
  return new Promise(resolve => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, address, () => server.close(() => resolve(true)));
  });
}
