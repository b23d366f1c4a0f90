// The kubectl commands of the operations guide and the runbooks, run on real pods as a reader copies them.
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { allPages, commandsOf } from '../../test/support/document.ts';
import { podsOf } from './kubectl.ts';
import type { ClusterRun } from './run.ts';

const project = fileURLToPath(new URL('../../', import.meta.url));
const exampleId = '6f1c2d6e-8d1f-4a55-9a1e-0d6a54a1c0de';

/** Other steps deploy, roll and revoke; the rest needs a mesh, a gateway, the metrics API or the Prometheus operator. */
const elsewhere = /istio-proxy|egctl|kubectl apply|rollout|kubectl .*top |create configmap|annotate|gatewayclass/;

/** For a deployment in the namespace `subscriptions`, whose names the pages have. */
export async function documentedSteps(run: ClusterRun): Promise<void> {
  const id = await refusedRequest(run);
  const folder = await mkdtemp(join(tmpdir(), 'documented-'));
  const program = join(folder, 'account-authz');
  await writeFile(program, `#!/bin/sh\nexec '${process.execPath}' '${join(project, 'dist', 'main.js')}' "$@"\n`);
  await chmod(program, 0o755);
  try {
    for (const { path, blocks } of allPages()) {
      if (path !== 'docs/operations.md' && !path.startsWith('docs/runbooks/Account')) continue;
      const commands = blocks.flatMap(block => commandsOf(block) ?? []);
      const chosen = commands.filter(text => text.includes('kubectl') && !elsewhere.test(text));
      if (chosen.length === 0) continue;
      const outcomes: Outcome[] = [];
      for (const text of chosen) {
        // Not a part of it, which another line may have in another field.
        const command = text.replaceAll(exampleId, id).replaceAll(exampleId.slice(0, 6), id);
        outcomes.push(await runInShell(command, folder));
      }
      const measured = outcomes.map(({ code, lines }) => `exit ${code}, ${lines} lines`).join('; ');
      const isGood = outcomes.every((outcome, index) => isAsExpected(chosen[index] ?? '', outcome));
      run.add({ what: `the commands of ${path}`, expected: 'exit 0; 3 of explain for a refusal', measured, isGood });
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

interface Outcome {
  readonly code: number;
  readonly lines: number;
}

function isAsExpected(command: string, { code, lines }: Outcome): boolean {
  if (command.includes('account-authz explain')) return code === 3;
  // Both logs have the line of a refused request, Envoy's a second later.
  return code === 0 && (!command.startsWith('id=') || lines === 2);
}

function runInShell(command: string, folder: string): Promise<Outcome> {
  const env = { ...process.env, PATH: `${folder}:${process.env.PATH}` };
  return new Promise(resolve => {
    execFile('bash', ['-euc', command], { cwd: project, env, timeout: 120_000 }, (error, stdout, stderr) => {
      if (error !== null) process.stderr.write(`${command}\n${stderr}\n`);
      const lines = stdout.split('\n').filter(line => line !== '').length;
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), lines });
    });
  });
}

/** Its request id, once Envoy has had time to write its line. */
async function refusedRequest({ deployed, load }: ClusterRun): Promise<string> {
  const [pod] = await podsOf(deployed.namespace, deployed.labels);
  const { headers } = await load.ask(`http://${pod?.address}:${deployed.port}/api/subscriptions`);
  await delay(1500);
  return headers['x-request-id'] ?? '';
}
