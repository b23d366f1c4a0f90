// What the real Envoy Gateway (egctl) makes of objects: its dump, the filters in it, and what it refuses.
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import { at, type Manifest } from '../../lab/manifest.ts';
import { resourcesOf } from './static-bootstrap.ts';

const run = promisify(execFile);

/** The network filters of the listener of the overlay. */
export function filtersOf(dump: unknown): unknown {
  const listener = resourcesOf(dump).listeners.find(({ name }) => name === 'subscriptions/subscriptions/http');
  const filters = at(listener, 'defaultFilterChain', 'filters');
  if (filters === undefined) throw new Error('Envoy Gateway made no listener');
  return filters;
}

/** The objects with their status, and what Envoy would be told. */
export async function translate(programs: string, manifests: readonly Manifest[]): Promise<unknown> {
  const directory = await mkdtemp(join(tmpdir(), 'egctl-'));
  try {
    const file = join(directory, 'manifests.yaml');
    await writeFile(file, manifests.map(each => stringify(each)).join('---\n'));
    const what = ['--from', 'gateway-api', '--to', 'gateway-api,xds', '--type', 'all', '--output', 'json'];
    const { stdout } = await run(
      join(programs, 'egctl'),
      ['experimental', 'translate', ...what, '--file', file, '-n', 'subscriptions'],
      { maxBuffer: 1 << 26 },
    );
    return JSON.parse(stdout);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** egctl ignores EndpointSlices and uses the address of the Service, which the API server would assign, except to a headless one. */
export function withAddress(manifest: Manifest): Manifest {
  return manifest.kind === 'Service'
    ? { ...manifest, spec: { ...(manifest.spec as object), clusterIP: '10.0.0.9' } }
    : manifest;
}

export function refusedOf(dump: unknown): string[] {
  const refused: string[] = [];
  const visit = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return;
    if (
      'type' in node &&
      'status' in node &&
      'reason' in node &&
      node.status !== 'True' &&
      node.reason !== 'NoConflicts'
    )
      refused.push(JSON.stringify(node));
    for (const value of Object.values(node)) visit(value);
  };
  visit(dump);
  return refused;
}
