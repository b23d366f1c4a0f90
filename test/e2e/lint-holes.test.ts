// Envoy accepts each bootstrap with a hole that the lint names, and the one with what it knows: none of them is a file that cannot run.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { writeFixture } from '../../lab/config-file.ts';
import { envoyBinary } from '../../lab/envoy.ts';
import { holes } from '../toolkit/lint/holes.ts';
import { honest } from '../toolkit/lint/honest.ts';
import { shipped } from '../toolkit/lint/shipped.ts';

const run = promisify(execFile);

async function validate(binary: string, bootstrap: unknown): Promise<void> {
  const file = writeFixture('bootstrap.json', bootstrap);
  const node = ['--service-node', 'n', '--service-cluster', 'c'];
  await run(binary, ['--mode', 'validate', '--config-path', file, '--log-level', 'critical', ...node]);
}

describe('bootstraps with a hole, in a real Envoy', () => {
  for (const [kind, all] of Object.entries(holes)) {
    it(`are valid: ${kind}`, async () => {
      const binary = await envoyBinary();
      const refused: string[] = [];
      for (const [name, [, bend]] of Object.entries(all)) {
        const parts = shipped();
        bend(parts);
        await validate(binary, parts.root).catch((error: Error) => refused.push(`${name}: ${error.message}`));
      }
      expect(refused).to.deep.equal([]);
    }).timeout(120_000);
  }

  it('are valid: what the lint knows to be harmless', async () => {
    await validate(await envoyBinary(), honest().root);
  }).timeout(120_000);
});
