// Generates mistakes: every value of a rendered overlay is misspelt, incremented, negated or left out, one at a time.
import { parse, stringify } from 'yaml';
import { everyValue, type Path } from './facts.ts';
import { type Manifest, withoutHash } from './manifest.ts';

export interface Mistake {
  /** `Kind/name path`; in a file of a ConfigMap: `ConfigMap/name/file path`. */
  readonly where: string;
  readonly what: string;
  /** Applies it to the manifests while the callback runs, then reverts it. */
  during<Result>(action: () => Result): Result;
}

type Container = Record<string | number, unknown> | unknown[];

export function mistakesIn(manifests: readonly Manifest[]): Mistake[] {
  return manifests.flatMap(manifest => {
    const name = `${manifest.kind}/${withoutHash(manifest.metadata.name)}`;
    if (manifest.kind === 'ConfigMap') return mistakesInFiles(name, manifest.data ?? {});
    return mistakesInDocument(name, manifest).filter(({ where }) => !/ (kind|apiVersion)$/.test(where));
  });
}

function mistakesInFiles(name: string, data: Record<string, string>): Mistake[] {
  return Object.entries(data).flatMap(([file, text]) => {
    const document: unknown = parse(text);
    return mistakesInDocument(`${name}/${file}`, document).map(mistake => ({
      ...mistake,
      during: action =>
        mistake.during(() => {
          data[file] = stringify(document);
          try {
            return action();
          } finally {
            data[file] = text;
          }
        }),
    }));
  });
}

export function mistakesInDocument(name: string, document: unknown): Mistake[] {
  return everyValue(document).flatMap(({ path, value: inside }) => {
    if (typeof inside !== 'object' || inside === null) return [];
    return Object.entries(inside).flatMap(([key, value]) =>
      changesOf(value).map(([what, changed]) => ({
        where: `${name} ${textOf([...path, key])}`,
        what,
        during: action => planted(inside as Container, key, changed, action),
      })),
    );
  });
}

function textOf(path: Path): string {
  return path.join('.');
}

const absent = Symbol('absent');

function changesOf(value: unknown): (readonly [what: string, changed: unknown])[] {
  const out = ['left out', absent] as const;
  switch (typeof value) {
    case 'string':
      return [[`misspelt: ${misspelt(value)}`, misspelt(value)], out];
    case 'number':
      return [[`incremented: ${value + 1}`, value + 1], out];
    case 'boolean':
      return [[`negated: ${!value}`, !value], out];
    default:
      return [out];
  }
}

/** Inserts a letter, or increments the number in the text: its form stays the same. */
function misspelt(text: string): string {
  if (/^\d+$/.test(text)) return String(Number(text) + 1);
  const numbered = /^(.*?)(\d+)(\D*)$/.exec(text);
  if (numbered !== null) return `${numbered[1]}${Number(numbered[2]) + 1}${numbered[3]}`;
  return `${text.slice(0, 1)}x${text.slice(1)}`;
}

function planted<Result>(inside: Container, key: string, changed: unknown, action: () => Result): Result {
  if (Array.isArray(inside)) {
    const index = Number(key);
    const kept = inside[index];
    inside.splice(index, 1, ...(changed === absent ? [] : [changed]));
    try {
      return action();
    } finally {
      inside.splice(index, changed === absent ? 0 : 1, kept);
    }
  }
  const kept = { ...inside };
  if (changed === absent) delete inside[key];
  else inside[key] = changed;
  try {
    return action();
  } finally {
    for (const each of Object.keys(inside)) delete inside[each];
    Object.assign(inside, kept);
  }
}
