// Reads the environment variables that affect how keys are fetched.
import type { ProxySettings } from '../keys/proxy.ts';
import type { CommandIo } from './command.ts';

/** Why keys must not be fetched in this environment, or undefined. */
export function environmentProblem(env: CommandIo['env']): string | undefined {
  // Node would not verify certificates, so anybody could serve the keys.
  if (env.NODE_TLS_REJECT_UNAUTHORIZED !== '0') return undefined;
  return 'NODE_TLS_REJECT_UNAUTHORIZED must not be 0, which turns off certificate checks: unset it';
}

export function proxyOf(env: CommandIo['env']): ProxySettings {
  const first = (...names: string[]): string | undefined =>
    names.map(name => env[name]).find(value => value !== undefined && value !== '');
  // In the order of Go's net/http.
  const httpsProxy = first('HTTPS_PROXY', 'https_proxy');
  const noProxy = first('NO_PROXY', 'no_proxy');
  return {
    ...(httpsProxy === undefined ? {} : { httpsProxy }),
    ...(noProxy === undefined ? {} : { noProxy }),
  };
}
