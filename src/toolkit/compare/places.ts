// Compares what does not depend on the path: headers, query parameters and hosts that name the account, and applications.
import { toHostEntries } from '../../authz/places/host-place.ts';
import type { Config } from '../../config/schema.ts';
import type { AskedCase, Caller, Examples } from './example.ts';
import type { Both } from './path-classes.ts';
import type { Permission } from './permissions.ts';
import { oneOrAll, type Row, whens, withExample } from './row.ts';
import { compareLists, type SettingChange } from './settings.ts';

interface Question {
  readonly setting: string;
  /** As the configuration writes it. */
  readonly entry: string;
  readonly mode: 'own' | 'another' | 'several';
  readonly caller: Partial<Caller>;
}

/**
 * Each entry that one side alone has is asked with what both permit otherwise: with another account in it, with the token's own, and, on a path
 * without an account, for a token with several.
 */
export function comparePlaces(
  configs: Both<Config>,
  { withAccount, withoutAccount }: { readonly withAccount?: Permission; readonly withoutAccount?: Permission },
  examples: Examples,
): readonly Row[] {
  const { own, second } = examples.samples;
  const found = new Map<string, { readonly row: Row; readonly entries: string[]; readonly asked: AskedCase }>();
  for (const { setting, entry, mode, caller } of questionsOf(configs, examples)) {
    for (const base of mode === 'several' ? [withoutAccount] : [withAccount, withoutAccount]) {
      if (base === undefined || (mode === 'several' && second === undefined)) continue;
      const accounts = mode === 'several' && second !== undefined ? [own, second] : base.sent.accounts;
      const { path } = base.sent;
      const full: Caller = { ...base, ...caller, sent: { accounts, path: `${path}${caller.sent?.path ?? ''}` } };
      // For what both accept otherwise.
      const [asked] = examples.toCases(full);
      if (asked === undefined) continue;
      const [before, after] = examples.answers(asked);
      if (before === after || (before !== 'allowed' && after !== 'allowed')) continue;
      const kind = after === 'allowed' ? 'more' : 'less';
      const key = [setting, mode, before, after].join();
      const when = whens[mode];
      const row: Row = { kind, setting, ...(when !== undefined && { when }), before, after };
      const group = found.get(key) ?? { row, entries: [], asked };
      found.set(key, group);
      if (!group.entries.includes(entry)) group.entries.push(entry);
    }
  }
  const rows = Array.from(found.values(), ({ row, entries, asked }) =>
    withExample({ ...row, entry: oneOrAll(entries) }, [asked], examples),
  );
  return [...rows, ...listChanges(configs).filter(({ setting }) => rows.every(row => row.setting !== setting))];
}

/** Where both accept nothing in common, no request shows what an entry decides: then the lists are compared. */
function listChanges([before, after]: Both<Config>): readonly SettingChange[] {
  const opposite = { more: 'less', less: 'more' } as const;
  const places = (['headers', 'query'] as const).flatMap(name =>
    compareLists('more', `account.${name}`, before.account[name], after.account[name]).map(
      (change): SettingChange => ({ ...change, kind: opposite[change.kind] }),
    ),
  );
  const [oldHosts, newHosts] = [before, after].map(({ account: { hosts = ['*'] } }) =>
    hosts.map(host => host.toLowerCase()),
  );
  return [
    ...places,
    ...compareLists('more', 'account.hosts', oldHosts ?? [], newHosts ?? []),
    ...compareLists('more', 'apps', before.apps, after.apps),
  ];
}

function questionsOf(configs: Both<Config>, { samples: { own, foreign } }: Examples): readonly Question[] {
  const [before, after] = configs.map(({ account }) => account);
  const onOneSide = (kind: 'headers' | 'query'): readonly string[] => {
    const [old, now] = [before?.[kind] ?? [], after?.[kind] ?? []];
    return [...now.filter(name => !old.includes(name)), ...old.filter(name => !now.includes(name))];
  };
  const ofAccount = (setting: string, entry: string, callerFor: (account: string) => Partial<Caller>): Question[] => [
    { setting, entry, mode: 'another', caller: callerFor(foreign) },
    { setting, entry, mode: 'several', caller: callerFor(own) },
  ];
  return [
    ...onOneSide('headers').flatMap(name =>
      ofAccount('account.headers', name, account => ({ headers: { [name]: account } })),
    ),
    ...onOneSide('query').flatMap(name =>
      ofAccount('account.query', name, account => ({ sent: { path: `?${name}=${account}`, accounts: [] } })),
    ),
    ...hostQuestions(configs, own, foreign),
    ...appQuestions(configs),
  ];
}

function hostQuestions(configs: Both<Config>, own: string, foreign: string): readonly Question[] {
  const lists = configs.map(({ account: { hosts } }) => hosts);
  if (lists.every(hosts => hosts === undefined)) return [];
  const setting = 'account.hosts';
  const listed = configs.flatMap(({ account: { hosts = [], parameter } }) =>
    toHostEntries(hosts, parameter).map((entry, i) => ({ entry, text: hosts[i] ?? '' })),
  );
  const questions = listed.flatMap(({ entry, text }): readonly Question[] => {
    const ask = (mode: Question['mode'], host: string): Question => ({ setting, entry: text, mode, caller: { host } });
    if (entry.kind === 'literal') return [ask('own', entry.host), ask('several', entry.host)];
    const [ofOwn, ofForeign] = [`${own}${entry.parent}`, `${foreign}${entry.parent}`];
    return [ask('own', ofOwn), ask('another', ofForeign), ask('several', ofOwn)];
  });
  const unlisted = { setting, entry: '*', mode: 'own', caller: { host: 'unlisted.invalid' } } as const;
  return lists.includes(undefined) ? [...questions, unlisted] : questions;
}

function appQuestions(configs: Both<Config>): readonly Question[] {
  const names = new Set(configs.flatMap(({ apps }) => apps));
  let unlisted = 'unlisted';
  while (names.has(unlisted)) unlisted += '1';
  const differs = (entry: string): boolean =>
    configs.some(({ apps }) => !apps.includes(entry) && (entry === '*' || !apps.includes('*')));
  return Array.from(names)
    .filter(differs)
    .map(entry => ({ setting: 'apps', entry, mode: 'own', caller: { app: entry === '*' ? unlisted : entry } }));
}
