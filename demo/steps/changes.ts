// The section of a change of the policy: what it opens is known before it is live.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { builtFile } from '../../lab/built.ts';
import type { Section } from '../run-sections.ts';
import { type Scene, step } from './scene.ts';

const file = fileURLToPath(new URL('../../config.example.yaml', import.meta.url));
/** The wider route above it looks as if it were enough. */
const narrowRoute = /^ {2}- path: \/api\/subscriptions\/accounts\/:account_id\/\*\n {4}roles: .*\n/m;

export function changes({ demo }: Scene): Section | undefined {
  // Where nothing can end account-authz, its command line is not at hand either.
  if (demo.authorizer === undefined) return undefined;
  return {
    title: 'A change of the policy, before it is live',
    steps: [
      step('compare: a route under a wider one is removed', 'opens other accounts', async () => {
        const input = readFileSync(file, 'utf8').replace(narrowRoute, '');
        const args = [fileURLToPath(builtFile('main.js')), 'compare', file, '-'];
        const { stdout, status } = spawnSync(process.execPath, args, { input, encoding: 'utf8' });
        const rows = stdout.split('\n').filter(line => line.startsWith('more'));
        const opens = status === 3 && rows.some(row => row.includes('account_mismatch'));
        return { actual: opens ? 'opens other accounts' : `exit code ${status}`, notes: rows.slice(0, 3) };
      }),
    ],
  };
}
