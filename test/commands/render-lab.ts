// The render command with a changed smallest configuration, and places in what it prints.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse, parseAllDocuments } from 'yaml';
import { type Outcome, runCommand } from '../../lab/command.ts';
import { changed, writeFixture } from '../../lab/config-file.ts';
import { freshFolder } from '../support/fresh-folder.ts';
import type { Part } from '../toolkit/lint/shipped.ts';

export const config = (changes: Readonly<Record<string, unknown>> = {}): string =>
  writeFixture('render.yaml', changed(changes));

export const render = (...args: readonly string[]): Promise<Outcome> => runCommand('render', args);

export async function rendered(
  changes: Readonly<Record<string, unknown>>,
  ...options: readonly string[]
): Promise<Part> {
  const { code, stdout, stderr } = await render('envoy', '--config', config(changes), ...options);
  expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
  return parse(stdout);
}

export const managerOf = (bootstrap: Part): Part =>
  bootstrap.static_resources.listeners[0].filter_chains[0].filters[0].typed_config;

export const routesOf = (bootstrap: Part): Part[] => managerOf(bootstrap).route_config.virtual_hosts[0].routes;

export const openSettings = {
  'issuers.0.audiences': ['https://api.example.com/orders'],
  routes: [{ path: '/api/orders/:account_id/*' }],
  public: [{ path: '/healthz' }, { path: '/docs/v1.2/*', methods: ['GET', 'POST'] }],
  account: { headers: ['x-org-id'], hosts: [':account_id.api.example.com', 'api.example.com'] },
  scopes: { billing: ['*'] },
  protectedResource: { resource: 'https://api.example.com/orders' },
};

/** The files that render writes for a target, by name. An argument may be several, between spaces. */
export async function filesOf(target: string, ...words: readonly string[]): Promise<Readonly<Record<string, Part[]>>> {
  const folder = freshFolder();
  try {
    const args = words.flatMap(each => each.split(' '));
    const { code, stderr } = await render(target, ...args, '--out', folder);
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
    const read = (name: string) => parseAllDocuments(readFileSync(join(folder, name), 'utf8')).map(each => each.toJS());
    return Object.fromEntries(readdirSync(folder).map(name => [name, read(name)]));
  } finally {
  }
}
