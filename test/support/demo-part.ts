// Starts a part of the demo as a process, as compose and the manifests do: `demo/serve.ts PART`.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { killAtExit } from '../../lab/child-process.ts';
import { programArguments } from '../../lab/compiled.ts';
import { freePorts } from '../../lab/free-ports.ts';
import { secrets } from '../../lab/secrets.ts';

const project = fileURLToPath(new URL('../../', import.meta.url));

export interface Part {
  readonly child: ChildProcess;
  readonly at: Readonly<Record<'listen' | 'health' | 'control', string>>;
}

/** Listens on free ports of 127.0.0.1; killed when this process exits. */
export async function startPart(name: string, ...options: readonly string[]): Promise<Part> {
  const ports = await freePorts(3);
  const [listen, health, control] = ports.map(port => `127.0.0.1:${port}`) as [string, string, string];
  const places = ['--listen', listen, '--health', health, '--control', control];
  const child = spawn(process.execPath, [...programArguments('demo/serve.ts'), name, ...places, ...options], {
    cwd: project,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  child.stdout.on('data', (bytes: Buffer) => secrets.show('demo', bytes.toString()));
  killAtExit(child);
  await once(child.stdout, 'data');
  return { child, at: { listen: `http://${listen}`, health: `http://${health}`, control: `http://${control}` } };
}
