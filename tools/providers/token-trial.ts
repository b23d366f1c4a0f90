// Takes a token through `init`, then through `explain` and `serve` with the configuration of its page and with the one that `init` made.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { runProduct } from '../../lab/command.ts';
import { startGateway } from './gateway.ts';
import { decodeToken } from './oauth.ts';
import type { Result } from './trial.ts';

const path = '/api/subscriptions';
/** Of an API with one operation, so that nothing is left to choose. */
const document = { openapi: '3.1.0', security: [{ token: [] }], paths: { [path]: { get: {} } } };

export interface TokenTrial {
  readonly grant: string;
  /** Of the page. */
  readonly settings: Configuration;
  readonly initArgs?: readonly string[] | undefined;
  /** Of `init`: 3 where something must be chosen. */
  readonly initCode?: 3 | undefined;
}

interface Configuration extends Readonly<Record<string, unknown>> {
  readonly issuers?: readonly { readonly claims?: { readonly app?: string | readonly string[] } }[];
}

export async function tryToken(token: string, trial: TokenTrial, add: (result: Result) => void): Promise<void> {
  const { grant, settings, initArgs = [], initCode = 0 } = trial;
  const directory = await mkdtemp(join(tmpdir(), 'account-authz-token-'));
  const write = async (name: string, content: unknown): Promise<string> => {
    await writeFile(join(directory, name), JSON.stringify(content));
    return join(directory, name);
  };
  try {
    const made = await runProduct(['init', '--openapi', await write('api.json', document), ...initArgs], {
      input: token,
    });
    add({ grant, name: 'init', expected: `exit code ${initCode}`, got: `exit code ${made.code}` });
    const configurations = { 'the page': settings, ...(initCode === 0 && { init: parse(made.stdout) }) };
    for (const [source, configuration] of Object.entries<Configuration>(configurations)) {
      const args = ['--config', await write('config.json', configuration), '--path', path, '--json'];
      const explained = await runProduct(['explain', ...args], { input: token });
      const { reason = explained.stderr } = JSON.parse(explained.stdout || '{}') as { readonly reason?: string };
      add({ grant, name: `explain with ${source}`, expected: 'allowed', got: reason });
      const gateway = await startGateway(() => configuration);
      const got = await gateway.ask(token, { path }).finally(() => gateway.stop());
      const { claims } = decodeToken(token);
      const app = [configuration.issuers?.[0]?.claims?.app ?? []].flat().find(each => claims[each] !== undefined);
      add({ grant, name: `serve with ${source}`, expected: `200 owner of acme, app ${claims[app ?? '']}`, got });
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
