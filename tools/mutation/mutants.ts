// Generates all mutants of a source text, and one text with all of them, which runs the active one (Stryker's instrumenter).
import { readFileSync } from 'node:fs';
import { Instrumenter } from '@stryker-mutator/instrumenter';
import { project } from './scope.ts';

export interface Mutant {
  /** Unique within one call of `instrument`. */
  readonly id: string;
  readonly file: string;
  /** 1-based. */
  readonly line: number;
  readonly operator: string;
  readonly original: string;
  readonly replacement: string;
  /** 0-based index among the equal mutants of this file: together with the texts, its identity from run to run. */
  readonly occurrence: number;
}

/** `unreached`: no test covers it. */
export type Status = 'killed' | 'timeout' | 'survived' | 'unreached';

export interface Found {
  readonly mutant: Mutant;
  readonly status: Status;
}

export interface InstrumentedSources {
  readonly textOf: ReadonlyMap<string, string>;
  readonly mutants: readonly Mutant[];
}

const silent = () => undefined;
const log = {
  isTraceEnabled: () => false,
  isDebugEnabled: () => false,
  isInfoEnabled: () => false,
  isWarnEnabled: () => false,
  isErrorEnabled: () => false,
  isFatalEnabled: () => false,
  trace: silent,
  debug: silent,
  info: silent,
  warn: silent,
  error: silent,
  fatal: silent,
};

export async function instrument(files: readonly string[]): Promise<InstrumentedSources> {
  const sources = new Map(files.map(file => [file, readFileSync(`${project}${file}`, 'utf8')]));
  const inputs = [...sources].map(([name, content]) => ({ name, content, mutate: true }));
  const result = await new Instrumenter(log).instrument(inputs, { plugins: [], ignorers: [], excludedMutations: [] });
  const seen = new Map<string, number>();
  const mutants = result.mutants.map(({ id, fileName, mutatorName, location, replacement }): Mutant => {
    const original = textBetween(sources.get(fileName) ?? '', location);
    const looks = JSON.stringify([fileName, mutatorName, original, replacement]);
    const occurrence = seen.get(looks) ?? 0;
    seen.set(looks, occurrence + 1);
    return {
      id,
      file: fileName,
      line: location.start.line + 1,
      operator: mutatorName,
      original,
      replacement: replacement ?? '',
      occurrence,
    };
  });
  return { textOf: new Map(result.files.map(({ name, content }) => [name, content])), mutants };
}

/** A stable identity, as long as its own text and that of its equals do not change. */
export function nameOf({ file, operator, original, replacement, occurrence }: Omit<Mutant, 'id' | 'line'>): string {
  return JSON.stringify([file, operator, original, replacement, occurrence]);
}

interface Position {
  readonly line: number;
  readonly column: number;
}

function textBetween(text: string, { start, end }: { readonly start: Position; readonly end: Position }): string {
  const lines = text.split('\n');
  const offset = ({ line, column }: Position): number =>
    lines.slice(0, line).reduce((sum, each) => sum + each.length + 1, 0) + column;
  return text.slice(offset(start), offset(end));
}
