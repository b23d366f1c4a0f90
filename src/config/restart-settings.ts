// Settings that are read only when the process starts: the service reports a change of them, which needs a restart.
import { tlsFileKeys } from '../files/tls-files.ts';
import type { Config } from './schema.ts';

/** The names of the settings that differ from those at the start. */
export function settingsThatNeedRestart(started: Config, changed: Config): readonly string[] {
  const before = new Map(settingsOfStart(started));
  return settingsOfStart(changed).flatMap(([name, value]) => (before.get(name) === value ? [] : [name]));
}

type Setting = readonly [name: string, value: string | undefined];

function settingsOfStart({ listen, admin, tls }: Config): readonly Setting[] {
  return [['listen', listen], ['admin', admin], ...tlsFileKeys.map(key => [`tls.${key}`, tls?.[key]] as const)];
}
