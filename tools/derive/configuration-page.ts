// docs/configuration.md: every key of the configuration with its type, default, bounds and place, from the JSON Schema.
import { toJsonSchema } from '../../src/config/schema.ts';

interface Node {
  readonly type?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Node>>;
  readonly required?: readonly string[];
  readonly items?: Node;
  readonly anyOf?: readonly Node[];
  readonly additionalProperties?: Node | boolean;
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
}

/** Settings that the process binds or reads once (docs/configuration.md). */
const needsRestart = /^(?:listen|listenInsecure|admin|tls)(?:\.|$)/;

export function makeConfigurationPage(): string {
  const schema = toJsonSchema() as Node;
  const lines = [
    '# Configuration',
    '',
    '<!-- npm run derive writes this page from the schema. -->',
    '',
    'One YAML file, `/etc/account-authz/config.yaml` unless `--config` names another. [config.example.yaml](../config.example.yaml) has every key',
    'in its place, [config.schema.json](../config.schema.json) is for editors. Keys that are not here are errors. `account-authz check-config` prints every',
    'problem of a file at once, or the settings in effect.',
    '',
    'A changed file takes effect within 5 seconds, or at once with SIGHUP; one with a problem is refused as a whole, and the old one stays in force.',
    'Keys marked **restart** keep their value until the next start. Between keys these rules hold as well:',
    '`keys.maxAgeSeconds` ≥ `keys.refreshSeconds` ≥ `keys.cooldownSeconds`; each issuer has exactly one of `jwksUrl`, `discoveryUrl` and `jwksFile`, and both',
    'of `clientCertFile` and `clientKeyFile` or neither, and neither with `jwksFile`; each role of a route is named in `roles` and each scope in `scopes`; a path with',
    'parameters has the account among them, or its route says `accountInPath: false`; no public route matches a path that a route matches; no account header is under',
    'the prefix of `identityHeaders`; no route matches the path of the metadata document of `protectedResource`, whose host is one of `account.hosts`; no issuer, route',
    'or list item stands there twice, no two roles are called by one name, and no `iss` fits two issuers; `{acc}` stands where [issuers of one account each](accounts.md#issuers-of-one-account-each) may have it. The JSON Schema does not have these rules, and does not know which header names and prefixes others use, which query parameters',
    'override the method, and whether an address or URL can be parsed: `check-config` does.',
    '',
    ...table('At the top', '', schema),
  ];
  return `${lines.join('\n').trimEnd()}\n`;
}

/** A table of the members of an object, then one for each nested object. */
function table(title: string, prefix: string, object: Node): string[] {
  const members = Object.entries(object.properties ?? {});
  const row = ([path, node, isRequired]: readonly [string, Node, boolean]): string => {
    const marks = needsRestart.test(path) ? ' **restart**' : '';
    const cells = [typeOf(node), defaultOf(node, isRequired), boundsOf(node)];
    return `| \`${path}\` | ${cells.join(' | ')} | ${escaped(node.description ?? '')}${marks} |`;
  };
  const rows = members.flatMap(([name, node]) => [
    row([`${prefix}${name}`, node, object.required?.includes(name) ?? false]),
    ...formsOf(node).map(([form, inner]) => row([`${prefix}${name}.${form}`, inner, false])),
    ...formsOf(entriesOf(node)).map(([form, inner]) => row([`${prefix}${name}.NAME.${form}`, inner, false])),
    ...formsOf(node.items ?? {}).map(([form, inner]) => row([`${prefix}${name}[].${form}`, inner, false])),
  ]);
  const deeper = members.flatMap(([name, node]) => {
    const inner = node.items?.properties === undefined ? node : node.items;
    if (inner.properties === undefined) return [];
    const path = `${prefix}${name}${inner === node ? '' : '[]'}`;
    return table(`\`${path}\``, `${path}.`, inner);
  });
  return [
    `## ${title}`,
    '',
    '| key | type | default | bounds | what |',
    '|---|---|---|---|---|',
    ...rows,
    '',
    ...deeper,
  ];
}

/** The schema of the values of an object whose keys the user chooses. */
function entriesOf({ additionalProperties }: Node): Node {
  return typeof additionalProperties === 'object' ? additionalProperties : {};
}

function isRecord({ additionalProperties }: Node): boolean {
  return typeof additionalProperties === 'object';
}

/** The members of the forms of a value that may be written in several. */
function formsOf({ anyOf = [] }: Node): readonly (readonly [string, Node])[] {
  return anyOf.flatMap(({ properties = {} }) => Object.entries(properties));
}

function typeOf(node: Node): string {
  if (node.anyOf !== undefined)
    return node.anyOf.some(({ type }) => type === 'object') ? 'text or object' : 'text or list of text';
  if (node.enum !== undefined) return 'one of a set';
  if (node.type === 'array') {
    const { properties, anyOf } = node.items ?? {};
    return `list of ${anyOf === undefined ? (properties === undefined ? 'text' : 'objects') : 'text or objects'}`;
  }
  const entries = entriesOf(node).type;
  if (node.type === 'object')
    return entries === 'string' ? 'object of text' : isRecord(node) ? 'object of grants' : 'object';
  return node.type === 'string' ? 'text' : (node.type ?? '');
}

function defaultOf(node: Node, isRequired: boolean): string {
  if (isRequired) return '**required**';
  if (node.type === 'object') return node.required === undefined && !isRecord(node) ? 'see below' : 'none';
  return node.default === undefined ? 'none' : `\`${escaped(JSON.stringify(node.default))}\``;
}

// The description says it in words.
const maxPatternLength = 64;

function boundsOf(node: Node): string {
  const item = node.items;
  if (node.enum !== undefined) return node.enum.map(value => `\`${String(value)}\``).join(' ');
  if (item?.enum !== undefined) return item.enum.map(value => `\`${String(value)}\``).join(' ');
  const { minimum, maximum, minLength, maxLength, pattern } = item?.properties === undefined ? (item ?? node) : node;
  const parts = [
    minimum === undefined
      ? undefined
      : maximum === Number.MAX_SAFE_INTEGER
        ? `at least ${minimum}`
        : `${minimum} to ${maximum}`,
    maxLength === undefined ? undefined : `${minLength ?? 0} to ${maxLength} characters`,
    pattern === undefined || pattern.length > maxPatternLength || node.type === 'object'
      ? undefined
      : `\`${escaped(pattern)}\``,
  ];
  return parts.filter(part => part !== undefined).join(', ');
}

// A vertical bar would end the cell, also inside code.
function escaped(text: string): string {
  return text.replaceAll('|', '\\|');
}
