// Envoy accepts each bootstrap with a hole that the lint names: none of them is a file that cannot run.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { writeFixture } from '../../lab/config-file.ts';
import { envoyBinary } from '../../lab/envoy.ts';
import { holes } from '../envoy-config/lint/holes.ts';
import { shipped } from '../envoy-config/lint/shipped.ts';

const run = promisify(execFile);

describe('bootstraps with a hole, in a real Envoy', () => {
  for (const [kind, all] of Object.entries(holes)) {
    it(`are valid: ${kind}`, async () => {
      const binary = await envoyBinary();
      const refused: string[] = [];
      for (const [name, [, bend]] of Object.entries(all)) {
        const parts = shipped();
        bend(parts);
        const file = writeFixture('hole.json', parts.root);
        const node = ['--service-node', 'n', '--service-cluster', 'c'];
        const args = ['--mode', 'validate', '--config-path', file, '--log-level', 'critical', ...node];
        await run(binary, args).catch((error: Error) => refused.push(`${name}: ${error.message}`));
      }
      expect(refused).to.deep.equal([]);
    }).timeout(120_000);
  }
});
