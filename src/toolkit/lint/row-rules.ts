// Rules from the rows that render writes: a value that a row does not accept is a finding, for the reason of the row.
import { authzClusterSettings } from '../envoy-settings/authz-cluster.ts';
import { extAuthzSettings } from '../envoy-settings/authz-filter.ts';
import { managerSettings } from '../envoy-settings/manager-settings.ts';
import type { Setting } from '../envoy-settings/setting.ts';
import { defaultOptions, type EnvoySettings } from '../envoy-settings/settings.ts';
import { type Tree, toPlain } from '../envoy-settings/tree.ts';
import type { AuthzFilter, GuardedManager } from './lint-model.ts';
import { valueNames } from './not-judged.ts';
import type { ProtoValue } from './proto-value.ts';
import { type Rule, type Rules, when } from './rule.ts';

// What is compared is the same for every configuration.
const settings: EnvoySettings = {
  ...defaultOptions,
  paths: [],
  publicRoutes: [],
  metadata: undefined,
  hosts: undefined,
  methods: [],
  accountHeaders: [],
  shownHeaders: [],
  identityPrefix: '',
  identity: { all: [], lookAlikes: [] },
  forwardsToken: false,
  hasCookiePlace: false,
  rewrittenHeaders: [],
  headers: [],
  authz: { kind: 'tcp', host: '127.0.0.1', port: 9191 },
  authzAdmin: { kind: 'tcp', host: '127.0.0.1', port: 9192 },
  headersKib: 0,
  tls: undefined,
};

// They have rules of their own, which know more than one value.
const leftOut: ReadonlySet<string> = new Set(
  `clear_route_cache filter_enabled filter_enabled_metadata http_service allowed_headers
  disallowed_headers decoder_header_mutation_rules retry_policy early_header_mutation_extensions`.split(/\s+/),
);

export const checkRowRules: Rules<AuthzFilter> = toRules(
  extAuthzSettings(settings),
  'filters.http.ext_authz.v3.ExtAuthz',
  check => check.settings,
);

export const managerRowRules: Rules<GuardedManager> = toRules(
  managerSettings(settings),
  'filters.network.http_connection_manager.v3.HttpConnectionManager',
  ({ manager }) => manager.value,
);

export const clusterRowRules: Rules<AuthzFilter> = toRules(
  authzClusterSettings(settings).filter(({ field }) => field === 'connect_timeout'),
  'config.cluster.v3.Cluster',
  ({ cluster }) => cluster?.value,
);

/** `message` is that of envoy-messages.json. */
function toRules<Subject>(
  rows: readonly Setting[],
  message: string,
  pick: (subject: Subject) => ProtoValue | undefined,
  path: readonly string[] = [],
): Rules<Subject> {
  const rules = rows.flatMap((row): readonly (readonly [string, Rule<Subject>])[] => {
    const { field, why = '', value, fields, accepts } = row;
    if (leftOut.has(field) || accepts === 'anything') return [];
    if (fields !== undefined) return Object.entries(toRules(fields, message, pick, [...path, field]));
    if (why === '') return [];
    const written = `\`${field}: ${format(toPlain(value))}\``;
    const names = valueNames(message, [...path, field]);
    const find = (subject: Subject) => {
      const at = [...path, field].reduce<ProtoValue | undefined>((each, name) => each?.field(name), pick(subject));
      const says = at && differenceOf(at, row, names);
      return when(says !== undefined, at, says ?? '');
    };
    const [what, fix] =
      value === undefined ? [`\`${field}\` is set`, 'remove it'] : [`${limits(row)} ${written}`, `write ${written}`];
    return [[field.replaceAll('_', '-'), { what, why, fix, find }]];
  });
  return Object.fromEntries(rules);
}

function limits({ accepts }: Setting): string {
  const { absent, least, most } = typeof accepts === 'object' ? accepts : {};
  if (least !== undefined) return `From ${least} to ${most} is good, not what is beyond: \`render\` writes`;
  return absent ? 'Another value than' : 'Missing, or another value than';
}

/** What is said of a value that the row does not accept. */
function differenceOf(at: ProtoValue, { value, accepts }: Setting, names: readonly string[]): string | undefined {
  const { absent, values = [], least, most } = typeof accepts === 'object' ? accepts : {};
  if (!at.isPresent) return value === undefined || absent ? undefined : 'is missing';
  const plain = toPlain(value);
  if (least !== undefined) {
    const number = String(plain).endsWith('s') ? at.seconds() : at.number();
    const isInside = number === undefined || (number >= least && number <= (most ?? Number.POSITIVE_INFINITY));
    return isInside ? undefined : `is not between ${least} and ${most} s`;
  }
  if ([...(value === undefined ? [] : [plain]), ...values].some(each => isEqual(at, each, names))) return undefined;
  if (value === undefined) return values.length > 0 ? `is not ${values.join(' or ')}` : 'is set';
  return typeof plain === 'boolean' ? `is ${!plain}` : `is not ${format(plain)}`;
}

const statusNumbers: Readonly<Record<string, string>> = { ServiceUnavailable: '503' };

/** A boolean that cannot be read is reported as such. An enum value may be a number. */
function isEqual(at: ProtoValue, wanted: unknown, names: readonly string[]): boolean {
  if (typeof wanted === 'boolean') return (at.flag() ?? wanted) === wanted;
  if (typeof wanted === 'object' && wanted !== null)
    return Object.entries(wanted).every(([name, each]) => isEqual(at.field(name), each, []));
  const text = at.scalarText() ?? '';
  const number = statusNumbers[String(wanted)] ?? names.indexOf(String(wanted)).toString();
  return [number, String(wanted).toUpperCase()].includes(text.toUpperCase());
}

function format(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  const members = Object.entries(value).map(([name, each]) => `${name}: ${format(each as Tree)}`);
  return `{ ${members.join(', ')} }`;
}
