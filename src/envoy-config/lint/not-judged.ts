// Names what the lint does not know: every field, value and extension of a file that known-messages.ts does not have.
import { wholeAnswersScript } from '../authz-cluster.ts';
import { knownMessages, possibleHarm } from './known-messages.ts';
import type { ProtoValue, ValuePath } from './proto-value.ts';

export interface NotJudged {
  readonly path: ValuePath;
  /** Printable; completes a sentence that starts with the place. */
  readonly message: string;
}

interface Field {
  readonly values: ReadonlySet<string> | undefined;
  readonly message: string | undefined;
  readonly isMap: boolean;
}

/** Undefined: whatever the message has is harmless. */
type Fields = ReadonlyMap<string, Field> | undefined;

const bootstrap = 'config.bootstrap.v3.Bootstrap';
const tables = new Map<string, Fields>(
  Object.entries({
    ...knownMessages,
    // A dump has its listeners and clusters in sections of their own.
    DumpedBootstrap: (knownMessages[bootstrap] ?? '').replace(':StaticResources', ''),
  }).map(([name, text]) => [name, toFields(text)]),
);

function toFields(text: string): Fields {
  if (text === '*') return undefined;
  const words = text.split(/\s+/).filter(word => word !== '');
  return new Map(
    words.map(word => {
      const [, name = '', kind, rest = ''] = /^([\w.]+)(?:([=:<])(.*))?$/.exec(word) ?? [];
      return [
        name,
        {
          values: kind === '=' ? new Set(rest.split('|')) : undefined,
          message: kind === ':' || kind === '<' ? rest : undefined,
          isMap: kind === '<',
        },
      ];
    }),
  );
}

/** `message` is one of known-messages.ts. */
export function findNotJudged(root: ProtoValue, message: string): readonly NotJudged[] {
  const found: NotJudged[] = [];
  const add = (at: ProtoValue, says: string, name: string): void => {
    const [, harm = 'the lint does not know what it does'] = possibleHarm.find(([pattern]) => pattern.test(name)) ?? [];
    found.push({ path: at.path, message: `${says}: ${harm}` });
  };

  function visitMessage(value: ProtoValue, name: string): void {
    if (name === 'Any') {
      visitAny(value);
      return;
    }
    const fields = tables.get(name);
    if (fields === undefined) return;
    for (const fieldName of value.names()) {
      if (fieldName === '@type') continue;
      const field = fields.get(fieldName);
      const at = value.field(fieldName);
      if (field === undefined) add(at, 'is not judged', fieldName);
      else if (field.isMap) for (const entry of at.entries()) visitMessage(entry, field.message ?? '');
      else if (field.message !== undefined) for (const each of at.items()) visitMessage(each, field.message);
      else if (field.values !== undefined && !field.values.has(at.scalarText() ?? ''))
        add(at, 'has a value that is not judged', fieldName);
    }
  }

  /** An extension, alone or in a TypedExtensionConfig (`name`, `typed_config`). */
  function visitAny(value: ProtoValue): void {
    const config = value.field('typed_config');
    const { type, message: inner } = (config.isPresent ? config : value).any();
    // A name alone has no settings. Only sockets are found by it.
    if (type === '') {
      if (/^envoy\.(?!transport_sockets\.)/.test(value.field('name').text() ?? '')) add(value, 'is not judged', 'name');
      return;
    }
    const name = type.replace(/^envoy\./, '').replace(/^extensions\./, '');
    if (tables.has(name)) visitMessage(inner, name);
    else if (inner.field('default_source_code', 'inline_string').text() !== wholeAnswersScript)
      add(value, `(${type}) is not judged`, name);
  }

  visitMessage(root, message);
  return found;
}
