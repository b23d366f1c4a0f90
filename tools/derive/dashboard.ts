// k8s/monitoring/dashboard.json for Grafana, from the panels of dashboard-panels.ts.
import { type Panel, type Query, rows } from './dashboard-panels.ts';

const selectors = 'namespace=~"$namespace", instance=~"$instance"';
const envoySelectors = 'namespace=~"$namespace"';

/** Envoy is another scrape target, so its instance label does not match that of account-authz. */
function complete([expr]: Query): string {
  return expr.replaceAll(
    /(\w+)\{%/g,
    (_, name: string) => `${name}{${name.startsWith('envoy_') ? envoySelectors : selectors}`,
  );
}

/** Every expression of the dashboard, as Grafana receives it. */
export function dashboardExpressions(): readonly string[] {
  return Object.values(rows).flatMap(panels => panels.flatMap(({ queries }) => queries.map(complete)));
}

const columns = 24;
const heights = { stat: 4, timeseries: 8, heatmap: 8 } as const;
const datasource = { type: 'prometheus', uid: '$datasource' };

export function makeDashboard(): string {
  const panels: unknown[] = [];
  let y = 0;
  for (const [title, inRow] of Object.entries(rows)) {
    const gridPos = { x: 0, y, w: columns, h: 1 };
    panels.push({ id: panels.length + 1, type: 'row', title, collapsed: false, gridPos, panels: [] });
    y += 1;
    const w = columns / inRow.length;
    const h = Math.max(...inRow.map(({ kind }) => heights[kind]));
    for (const [i, panel] of inRow.entries()) panels.push(toGrafana(panel, panels.length + 1, { x: i * w, y, w, h }));
    y += h;
  }
  const dashboard = {
    uid: 'account-authz',
    title: 'account-authz',
    description: 'Decisions, keys, latency and process of account-authz, and the same checks as Envoy counts them.',
    tags: ['account-authz', 'envoy'],
    schemaVersion: 39,
    editable: true,
    graphTooltip: 1,
    refresh: '30s',
    time: { from: 'now-3h', to: 'now' },
    timezone: '',
    annotations: { list: [] },
    templating: {
      list: [
        { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus', refresh: 1 },
        variable('namespace', 'label_values(account_authz_build_info, namespace)'),
        variable('instance', 'label_values(account_authz_build_info{namespace=~"$namespace"}, instance)'),
      ],
    },
    panels,
  };
  return `${JSON.stringify(dashboard, null, 2)}\n`;
}

// `.*` also matches an absent label: outside Kubernetes there is no namespace.
function variable(name: string, query: string): unknown {
  return {
    name,
    label: name,
    type: 'query',
    datasource,
    query: { query, refId: name },
    refresh: 2,
    includeAll: true,
    multi: true,
    allValue: '.*',
    current: { text: 'All', value: '$__all' },
    sort: 1,
  };
}

function toGrafana(panel: Panel, id: number, gridPos: Readonly<Record<'x' | 'y' | 'w' | 'h', number>>): unknown {
  const { kind, title, about, unit, stacked = false, queries } = panel;
  const targets = queries.map((query, i) => ({
    refId: String.fromCharCode('A'.charCodeAt(0) + i),
    datasource,
    expr: complete(query),
    legendFormat: query[1] ?? '__auto',
    ...(kind === 'heatmap' ? { format: 'heatmap' } : {}),
    ...(kind === 'stat' ? { instant: false } : {}),
  }));
  const common = { id, type: kind, title, description: about, datasource, gridPos, targets };
  const defaults = { unit: unit === 'cores' ? 'short' : unit, min: 0 };
  switch (kind) {
    case 'stat':
      return {
        ...common,
        fieldConfig: { defaults, overrides: [] },
        options: { reduceOptions: { calcs: ['lastNotNull'] }, graphMode: 'area', colorMode: 'none' },
      };
    case 'timeseries': {
      const custom = {
        fillOpacity: stacked ? 60 : 5,
        showPoints: 'never',
        stacking: { mode: stacked ? 'normal' : 'none' },
      };
      return {
        ...common,
        fieldConfig: { defaults: { ...defaults, custom }, overrides: [] },
        options: { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } },
      };
    }
    case 'heatmap':
      return {
        ...common,
        options: { calculate: false, yAxis: { unit }, color: { scheme: 'Blues', mode: 'scheme' }, cellGap: 1 },
      };
  }
}
