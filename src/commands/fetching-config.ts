// What commands that decide with fetched keys share: the configuration, its revocation list, and how keys are fetched here.
import { type LoadOptions, loadConfig } from '../config/load.ts';
import { formatProblems } from '../config/problems.ts';
import type { ProxySettings } from '../keys/proxy.ts';
import { printable } from '../text/printable.ts';
import { CommandError, type CommandIo } from './command.ts';

/** Rejects with a CommandError. */
export async function loadFetchSettings(command: string, file: string, io: CommandIo, options?: LoadOptions) {
  requireSafeEnvironment(io.env);
  const loaded = await loadConfig(file, options);
  if (loaded.kind === 'misconfiguration')
    throw new CommandError(formatProblems(file, loaded.problems), { areLines: true });
  const { config, revocations } = loaded;
  const onWarning = (warning: string): void => {
    io.stderr.write(`account-authz ${command}: warning: ${printable(warning, maxTextLength)}\n`);
  };
  return { config, revocations, proxy: proxyOf(io.env), onWarning };
}

const maxTextLength = 2048;

export function requireSafeEnvironment(env: CommandIo['env']): void {
  // Node would not verify certificates, so anybody could serve the keys.
  if (env.NODE_TLS_REJECT_UNAUTHORIZED === '0')
    throw new CommandError('NODE_TLS_REJECT_UNAUTHORIZED must not be 0, which turns off certificate checks: unset it');
}

export function proxyOf(env: CommandIo['env']): ProxySettings {
  const first = (...names: string[]): string | undefined =>
    names.map(name => env[name]).find(value => value !== undefined && value !== '');
  // In the order of Go's net/http.
  const httpsProxy = first('HTTPS_PROXY', 'https_proxy');
  const noProxy = first('NO_PROXY', 'no_proxy');
  return { ...(httpsProxy !== undefined && { httpsProxy }), ...(noProxy !== undefined && { noProxy }) };
}
