// The settings that are used once, when the process starts: a change of them is told, and takes effect with the next start.

import { tlsFileKeys } from '../files/tls-files.ts';
import type { Config } from './schema.ts';

/** The names of those that differ from what the process was started with. */
export function settingsThatNeedRestart(started: Config, changed: Config): readonly string[] {
  const before = new Map(settingsOfStart(started));
  return settingsOfStart(changed).flatMap(([name, value]) => (before.get(name) === value ? [] : [name]));
}

type Setting = readonly [name: string, value: string | undefined];

function settingsOfStart({ listen, admin, tls }: Config): readonly Setting[] {
  return [['listen', listen], ['admin', admin], ...tlsFileKeys.map(key => [`tls.${key}`, tls?.[key]] as const)];
}
