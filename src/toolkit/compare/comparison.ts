// Compares two configurations: rows of what the new one allows more, less and otherwise, each with an example.
import type { EffectiveConfig, WrittenConfig } from '../../config/load.ts';
import type { Config } from '../../config/schema.ts';
import { createCover } from './cover.ts';
import { claimedNames, createExamples, type Examples, unknownName } from './example.ts';
import { type Both, createPathClasses } from './path-classes.ts';
import { type Change, createQuestions, type Difference, methodsIn, type Sent } from './permissions.ts';
import { comparePlaces } from './places.ts';
import { oneOrAll, type Row, whens, withExample } from './row.ts';
import { compareSettings } from './settings.ts';

export interface Comparison extends Readonly<Record<Row['kind'], readonly Row[]>> {
  readonly complete: boolean;
  /** What was not compared. */
  readonly leftOut?: string;
}

const maxQuestions = 2_000_000;
/** With more, rows are about the sets of roles that the classes have in common, not about single roles. */
const maxSingleRoles = 200_000;

export function compareConfigs(
  loaded: Both<Pick<EffectiveConfig, 'config'> & { readonly written: Pick<WrittenConfig, 'config'> }>,
  { onQuestions, limit = maxQuestions }: { onQuestions?: (asked: number) => void; limit?: number } = {},
): Comparison {
  const configs: Both<Config> = [loaded[0].config, loaded[1].config];
  const methods = methodsIn(configs);
  const classes = createPathClasses(configs);
  const examples = createExamples(configs, classes.literals);
  const questions = createQuestions(configs, methods, examples.samples);
  const cover = createCover(classes);
  let asked = 0;
  let leftOut: string | undefined;
  classes.visit(pathClass => {
    asked += methods.length;
    if (asked > limit) {
      leftOut = `more than ${limit.toLocaleString('en')} questions: /${pathClass.segments.map(each => (each.kind === 'other' ? `:${each.name}` : each.text)).join('/')} and what follows it`;
      return false;
    }
    cover.count(pathClass);
    questions.differenceOf(pathClass);
    onQuestions?.(asked);
    return true;
  });
  const rows = withOwnNames([
    ...permissionRows(configs, methods, questions, cover.cover, examples),
    ...comparePlaces(configs, questions.common(), examples),
    ...orderRows(configs),
    ...compareSettings([loaded[0].written.config, loaded[1].written.config]),
  ]);
  const of = (kind: Row['kind']): readonly Row[] => rows.filter(row => row.kind === kind);
  return {
    more: of('more'),
    less: of('less'),
    other: of('other'),
    unordered: of('unordered'),
    complete: leftOut === undefined,
    ...(leftOut !== undefined && { leftOut }),
  };
}

/** No two cases of `test` have one name. */
function withOwnNames(rows: readonly Row[]): readonly Row[] {
  const known = new Map<string, number>();
  return rows.map(row => {
    if (row.example === undefined) return row;
    const { name } = row.example;
    const count = (known.get(name) ?? 0) + 1;
    known.set(name, count);
    return count === 1 ? row : { ...row, example: { ...row.example, name: `${name} (${count})` } };
  });
}

interface Draft {
  readonly change: Change;
  readonly path: string;
  readonly except: readonly string[];
  readonly sent: Sent | undefined;
  /** Methods by role, or by a set of roles. */
  readonly methods: Map<string, { readonly roles: readonly string[] | undefined; readonly methods: string[] }>;
}

function permissionRows(
  configs: Both<Config>,
  methods: readonly string[],
  questions: ReturnType<typeof createQuestions>,
  cover: ReturnType<typeof createCover>['cover'],
  examples: Examples,
): readonly Row[] {
  const differences = questions.differences();
  // By what changes, for one method and role: the classes in which it does.
  const groups = new Map<string, { readonly change: Change; readonly in: Set<Difference> }>();
  const changed = differences.flatMap(({ changes }) => changes);
  const count = changed.reduce((sum, { roles }) => sum + (roles?.length ?? 1), 0);
  for (const difference of differences) {
    for (const change of difference.changes) {
      const { roles } = change;
      const single = roles === undefined || count > maxSingleRoles ? [roles] : roles.map(role => [role]);
      for (const each of single) {
        const { kind, mode, method, scopes, before, after } = change;
        const key = JSON.stringify([kind, mode, method, each, scopes, before, after]);
        const group = groups.get(key) ?? { change: { ...change, roles: each }, in: new Set() };
        group.in.add(difference);
        groups.set(key, group);
      }
    }
  }
  const covers = new Map<string, ReturnType<typeof cover>>();
  const drafts = new Map<string, Draft>();
  for (const { change, in: inside } of groups.values()) {
    const key = Array.from(inside, ({ id }) => id).join();
    const covered = covers.get(key) ?? cover([...inside].flatMap(({ members }) => members));
    covers.set(key, covered);
    for (const { path, except, pathClass } of covered) {
      const { kind, mode, scopes, before, after } = change;
      const draftKey = JSON.stringify([kind, mode, scopes, before, after, path, except]);
      const draft = drafts.get(draftKey) ?? {
        change,
        path,
        except,
        sent: questions.sentOf(pathClass, change),
        methods: new Map(),
      };
      drafts.set(draftKey, draft);
      const name = change.roles?.join('\0') ?? '';
      const known = draft.methods.get(name) ?? { roles: change.roles, methods: [] };
      draft.methods.set(name, known);
      if (change.method !== undefined) known.methods.push(change.method);
    }
  }
  return [...drafts.values()].flatMap(draft => rowsOf(draft, configs, methods, examples));
}

/** Roles with the same methods are one row. */
function rowsOf(
  { change, path, except, sent, methods: byRole }: Draft,
  configs: Both<Config>,
  methods: readonly string[],
  examples: Examples,
): readonly Row[] {
  const { kind, mode, scopes, before, after } = change;
  const byMethods = new Map<string, { readonly roles: string[]; readonly methods: readonly string[] }>();
  for (const { roles = [], methods: own } of byRole.values()) {
    const group = byMethods.get(own.join()) ?? { roles: [], methods: own };
    group.roles.push(...roles);
    byMethods.set(own.join(), group);
  }
  return Array.from(byMethods.values(), ({ roles, methods: own }) => {
    const when = whens[mode];
    const row: Row = {
      kind,
      ...(roles.length > 0 && { role: oneOrAll(roles) }),
      ...(scopes !== undefined && { scope: oneOrAll(scopes) }),
      ...(own.length > 0 && { methods: own }),
      path,
      ...(except.length > 0 && { except }),
      ...(when !== undefined && { when }),
      ...(mode === 'wide' && { setting: 'routes.characters' }),
      before,
      after,
    };
    if (sent === undefined) return row;
    const [scope] = scopes ?? [];
    const asked = examples.toCases({
      sent,
      method: own[0] ?? methods[0] ?? 'GET',
      role: roles[0] ?? unknownName(configs, 'roles'),
      scope: scope === '*' ? undefined : scope,
    });
    return withExample(row, asked, examples);
  });
}

/** The order of names, and what the upstream learns as the role. */
function orderRows([before, after]: Both<Config>): readonly Row[] {
  return (['roles', 'scopes'] as const).flatMap((kind): readonly Row[] => {
    const [old, now] = [[...(before[kind]?.keys() ?? [])], [...(after[kind]?.keys() ?? [])]];
    const [kept, keptNow] = [old.filter(name => now.includes(name)), now.filter(name => old.includes(name))];
    const when = kind === 'roles' ? 'the role of a token with several' : 'the order of scopes in a challenge';
    const order: readonly Row[] =
      kept.join() === keptNow.join() ? [] : [{ kind: 'other', setting: kind, when, before: kept, after: keptNow }];
    if (kind === 'scopes') return order;
    const keys = [before, after].map(
      ({ roles }) =>
        new Map([...roles].flatMap(entry => claimedNames(new Map([entry])).map(name => [name, entry[0]] as const))),
    );
    const renamed = [...(keys[0] ?? [])].flatMap(([name, key]): readonly Row[] => {
      const now = keys[1]?.get(name);
      return now === undefined || now === key
        ? []
        : [{ kind: 'other', role: name, setting: 'roles', when: 'its name for the upstream', before: key, after: now }];
    });
    return [...order, ...renamed];
  });
}
