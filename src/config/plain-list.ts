// Reads list items in the plainest forms of YAML without its library, which takes 60 µs for each: lines of `name: value`, and JSON.
// Whatever is written in another way is left to the library.
import { isJsonObject, parseStrictJson } from '../json/strict-json.ts';

/** Texts by name. */
export type PlainItem = ReadonlyMap<string, string>;

const dash = /^( *)- /;
const member = /^(\w+): ("?)([A-Za-z0-9][\w.~@:/+|-]*)\2(?: +#.*)?$/;
const flowMember = /^(\w+): ("?)([A-Za-z0-9][\w.~@:/+|-]*)\2$/;
const flowMapping = /^\{([^{}#]*)\}(?: +#.*)?$/;

/** Undefined if any of it is not plain, or if it is empty. The items then have the texts that the library would give. */
export function readPlainList(source: string): readonly PlainItem[] | undefined {
  if (source.startsWith('[')) return readJson(source);
  const [, indent = ''] = dash.exec(source) ?? [];
  const items: PlainItem[] = [];
  let open: Map<string, string> | undefined;
  for (const line of source.split(/\r?\n/)) {
    if (/^ *(?:#.*)?$/.test(line)) continue;
    const isItem = dash.exec(line)?.[1] === indent;
    const text = line.slice(indent.length + '- '.length);
    if (isItem) {
      const flow = readFlowMapping(text);
      if (flow !== undefined) {
        items.push(flow);
        open = undefined;
        continue;
      }
      open = new Map();
      items.push(open);
    } else if (!line.startsWith(`${indent}  `)) return undefined;
    if (open === undefined || !addMember(open, member.exec(text))) return undefined;
  }
  return items.length > 0 ? items : undefined;
}

function readFlowMapping(text: string): Map<string, string> | undefined {
  const [, inside] = flowMapping.exec(text) ?? [];
  if (inside === undefined) return undefined;
  const item = new Map<string, string>();
  return inside
    .trim()
    .split(/, ?/)
    .every(each => addMember(item, flowMember.exec(each)))
    ? item
    : undefined;
}

function addMember(item: Map<string, string>, found: RegExpExecArray | null): boolean {
  const [, name, quote, text] = found ?? [];
  if (name === undefined || text === undefined || isOtherType(name) || item.has(name)) return false;
  if (quote === '' && isOtherType(text)) return false;
  item.set(name, text);
  return true;
}

// What YAML 1.2 section 10.3.2 resolves to something else than text, a key, and a little more.
function isOtherType(text: string): boolean {
  return text.endsWith(':') || !Number.isNaN(Number(text)) || /^(?:true|false|null)$/i.test(text);
}

function readJson(source: string): readonly PlainItem[] | undefined {
  const json = parseStrictJson(source);
  if (json.kind === 'problem' || !Array.isArray(json.value)) return undefined;
  const items = json.value.map(item => (isJsonObject(item) ? Object.entries(item) : [['', undefined]]));
  const isPlain = (item: unknown[][]): item is [string, string][] => item.every(([, text]) => typeof text === 'string');
  return items.every(isPlain) ? items.map(item => new Map(item)) : undefined;
}
