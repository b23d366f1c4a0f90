// Names what the lint does not know: every field, value and extension of a file that known-messages.ts does not have.
import { wholeAnswersScript } from '../envoy-settings/authz-cluster.ts';
import messages from './envoy-messages.json' with { type: 'json' };
import { knownMessages, possibleHarm } from './known-messages.ts';
import type { ProtoValue } from './proto-value.ts';
import { rewritesToItself } from './route-match.ts';
import type { Finding } from './rule.ts';

interface Field {
  readonly kind: string | undefined;
  /** After `=`: names of values. After `:`: a message. */
  readonly rest: string;
}

type Fields = ReadonlyMap<string, Field>;

const toTable = (texts: Readonly<Record<string, string>>): ReadonlyMap<string, Fields> =>
  new Map(Object.entries(texts).map(([name, text]) => [name, toFields(text)]));

function toFields(text: string): Fields {
  const words = text.split(/\s+/).filter(word => word !== '');
  return new Map(
    words.flatMap(word => {
      const [, name = '', kind, rest = ''] = /^([\w.*]+)(?:([=:])(.*))?$/.exec(word) ?? [];
      // proxy_100_continue is proxy100Continue in JSON.
      return [name, name.replaceAll(/_(?=\d)/g, '')].map(each => [each, { kind, rest }] as const);
    }),
  );
}

const [known, described] = [toTable(knownMessages), toTable(messages)];

/** The names of the values of an enum, by their numbers. */
export function valueNames(message: string, [field = '', ...inner]: readonly string[]): readonly string[] {
  const { kind, rest = '' } = described.get(message)?.get(field) ?? {};
  if (inner.length > 0) return valueNames(rest, inner);
  return kind === '=' ? rest.split('|') : [];
}

/** Of an extension that has only its name. */
export const withoutConfig = 'has no typed_config, without which Envoy 1.40 does not start';

const shortName = (type: string): string => type.replace(/^envoy\./, '').replace(/^extensions\./, '');

/** Whether known-messages.ts has this type of an extension. */
export function isKnown(type: string): boolean {
  return known.has(shortName(type));
}

/** `message` is one of known-messages.ts; the fields in `left out` are looked at elsewhere. */
export function findNotJudged(
  root: ProtoValue,
  message: string,
  report: (found: Finding) => void,
  leftOut: readonly string[] = [],
): void {
  const add = (at: ProtoValue, says: string, name: string): void => {
    const [, harm = 'the lint does not know what it does'] = possibleHarm.find(([pattern]) => pattern.test(name)) ?? [];
    report({ at, says: `${says}: ${harm}` });
  };

  function visitMessage(value: ProtoValue, name: string): void {
    const fields = known.get(name);
    const types = described.get(name);
    const others = fields?.get('*');
    if (fields === undefined || (others !== undefined && fields.size === 1)) return;
    for (const fieldName of value.names()) {
      if (fieldName === '@type' || (value === root && leftOut.includes(fieldName))) continue;
      const field = fields.get(fieldName) ?? others;
      const type = types?.get(fieldName);
      const at = value.field(fieldName);
      if (types !== undefined && type === undefined) report({ at, says: 'is no field of Envoy 1.40' });
      else if (field === undefined && !rewritesToItself(at)) add(at, 'is not judged', fieldName);
      else if (field === undefined) continue;
      else if (field.kind === '=') visitValue(at, fieldName, field.rest.split('|'), type?.rest.split('|') ?? []);
      else if (field !== others)
        visitField(at, fieldName, field.kind !== ':' && type?.kind === ':' ? type.rest : field.rest);
    }
    const isNamed =
      fields.has('typed_config') && !['typed_config', 'config_discovery'].some(each => value.field(each).isPresent);
    // A name alone has no settings. Only sockets are found by it.
    if (isNamed && /^envoy\.(?!transport_sockets\.)/.test(value.field('name').text() ?? ''))
      report({ at: value, says: withoutConfig });
  }

  function visitField(at: ProtoValue, field: string, type: string): void {
    if (type === 'Any' && at.entry('@type').isPresent) visitExtension(at);
    else if (type === 'Any') for (const each of at.entries()) visitExtension(each);
    else if (known.has(type)) for (const each of at.items()) visitMessage(each, type);
    else if (type !== '') add(at, 'is not judged', field);
  }

  /** An enum value by its name or its number. */
  function visitValue(at: ProtoValue, field: string, good: readonly string[], names: readonly string[]): void {
    const text = at.scalarText() ?? '';
    const isGood = (name = '') => good.some(each => each.toUpperCase() === name.toUpperCase());
    if (!isGood(text) && !isGood(names[Number(text)])) add(at, 'has a value that is not judged', field);
  }

  function visitExtension(value: ProtoValue): void {
    const { type, message: inner } = value.any();
    const name = shortName(type);
    if (known.has(name)) visitMessage(inner, name);
    else if (inner.field('default_source_code', 'inline_string').text() !== wholeAnswersScript)
      add(value, `(${type}) is not judged`, name);
  }

  visitMessage(root, message);
}
