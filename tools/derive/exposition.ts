// Parses the Prometheus text format: metrics with type, help and the labels of their series.

export interface MetricFamily {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  /** The labels of each series, in the order of the page. */
  readonly series: readonly ReadonlyMap<string, string>[];
}

export function parseExposition(text: string): readonly MetricFamily[] {
  const helps = new Map<string, string>();
  const families: { name: string; type: string; help: string; series: ReadonlyMap<string, string>[] }[] = [];
  for (const line of text.split('\n')) {
    const [, keyword, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) ?(.*)$/.exec(line) ?? [];
    if (keyword === 'HELP') helps.set(name, rest);
    else if (keyword === 'TYPE') families.push({ name, type: rest, help: helps.get(name) ?? '', series: [] });
    else if (line !== '' && !line.startsWith('#')) families.at(-1)?.series.push(labelsOf(line));
  }
  return families;
}

/** Every queryable name of these metrics: a histogram has three. */
export function seriesNames(families: readonly MetricFamily[]): ReadonlySet<string> {
  return new Set(
    families.flatMap(({ name, type }) =>
      type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    ),
  );
}

function labelsOf(line: string): ReadonlyMap<string, string> {
  return new Map(
    Array.from(line.matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g), ([, name = '', value = '']) => [name, value]),
  );
}
