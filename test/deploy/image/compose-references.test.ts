// compose.yaml is consistent with itself and with its mounted files; each rule is tested with mistakes that it must find.
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { parse } from 'yaml';
import { parseListenAddress } from '../../../src/text/listen-address.ts';
import { at, everyValue } from '../k8s/facts.ts';
import { type ComposeParts, composeReferenceProblems } from './compose-references.ts';

const project = new URL('../../../', import.meta.url);
const files = {
  compose: 'compose.yaml',
  prometheus: 'demo/compose/prometheus/prometheus.yml',
  datasources: 'demo/compose/grafana/provisioning/datasources/prometheus.yaml',
  dashboards: 'demo/compose/grafana/provisioning/dashboards/account-authz.yaml',
  dashboard: 'k8s/monitoring/dashboard.json',
  config: 'demo/compose/account-authz/config.yaml',
  envoy: 'envoy.yaml',
  alerts: 'k8s/monitoring/alerts.yaml',
} as const;
type Texts = Readonly<Record<keyof typeof files, string>>;

const texts = Object.fromEntries(
  await Promise.all(
    Object.entries(files).map(async ([name, path]) => [name, await readFile(new URL(path, project), 'utf8')]),
  ),
) as Texts;

function problemsOf(changed: Partial<Texts> = {}): string[] {
  const all: Texts = { ...texts, ...changed };
  const admin = parseListenAddress(parse(all.config).admin);
  const parts: ComposeParts = {
    compose: parse(all.compose, { merge: true }),
    prometheus: parse(all.prometheus),
    datasources: parse(all.datasources).datasources,
    dashboardFolders: parse(all.dashboards).providers.map((provider: unknown) => at(provider, 'options', 'path')),
    dashboardSources: everyValue(JSON.parse(all.dashboard))
      .filter(({ path }) => path.at(-1) === 'uid' && path.at(-2) === 'datasource')
      .map(({ value }) => String(value)),
    jobs: Array.from(all.alerts.matchAll(/job=~"([^"]+)"/g), ([, job]) => new RegExp(`^(?:${job})$`)),
    adminPort: admin.kind === 'tcp' ? admin.port : 0,
    envoyAdminPort: Number(at(parse(all.envoy), 'admin', 'address', 'socket_address', 'port_value')),
    isFile: path => existsSync(new URL(path, project)),
  };
  return composeReferenceProblems(parts);
}

const mistakes: readonly (readonly [file: keyof Texts, part: string, by: string])[] = [
  ['compose', 'depends_on: { prometheus:', 'depends_on: { prometeus:'],
  ['compose', 'pid: service:account-authz', 'pid: service:authz'],
  ['compose', ':8080" # Envoy', ':8088" # Envoy'],
  ['compose', 'READY_PORT:-8081}', 'READY_PORT:-8082}'],
  ['compose', 'GRAFANA_PORT:-3000}:3000', 'GRAFANA_PORT:-3000}:3001'],
  ['compose', "fetch('http://127.0.0.1:8090", "fetch('http://127.0.0.1:8099"],
  ['compose', "fetch('http://127.0.0.1:8001", "fetch('http://127.0.0.1:8004"],
  ['compose', '--control, "127.0.0.1:8001"', '--control, "127.0.0.1:8002"'],
  ['compose', '--control, "127.0.0.1:8001"', '--control, "127.0.0.1:8091"'],
  ['compose', '--url=http://127.0.0.1:9090', '--url=http://127.0.0.1:9091'],
  ['compose', '"http://127.0.0.1:3000/api', '"http://127.0.0.1:3001/api'],
  ['compose', '--config.file=/etc/prometheus/prometheus.yml', '--config.file=/etc/prometheus/prometheus.yaml'],
  ['compose', './demo/compose/prometheus:/etc/prometheus', './demo/compose/prometheus:/etc/prom'],
  ['compose', './k8s/monitoring:/etc/monitoring', './k8s/monitoring:/etc/rules'],
  ['compose', './k8s/monitoring:/etc/monitoring', './k8s/monitors:/etc/monitoring'],
  ['compose', 'tsdb.path=/prometheus', 'tsdb.path=/data'],
  ['compose', '"/prometheus:mode', '"/prometheus-data:mode'],
  ['compose', '/etc/envoy/ready.sh:ro', '/etc/envoy/readiness.sh:ro'],
  ['compose', '--config-path, /etc/envoy/envoy.yaml', '--config-path, /etc/envoy/bootstrap.yaml'],
  ['compose', '[serve, --config, /etc/account-authz/config.yaml]', '[serve, --config, /etc/account-authz/config.yml]'],
  ['compose', './demo/compose/account-authz:/etc/account-authz', './demo/compose/account-authz:/etc/authz'],
  ['compose', '/etc/grafana/dashboards/account', '/etc/grafana/dashboard/account'],
  ['compose', 'provisioning:/etc/grafana/provisioning', 'provisioning:/etc/grafana/provision'],
  ['prometheus', '/etc/monitoring/alerts.yaml', '/etc/monitoring/alert.yaml'],
  ['prometheus', '127.0.0.1:9192', '127.0.0.1:9193'],
  ['prometheus', '127.0.0.1:9901', '127.0.0.1:9902'],
  ['prometheus', '127.0.0.1:9090', '127.0.0.1:9091'],
  ['prometheus', 'job_name: account-authz', 'job_name: authz'],
  ['prometheus', '/stats/prometheus', '/stats'],
  ['datasources', 'http://pod:9090', 'http://prometheus:9090'],
  ['datasources', 'http://pod:9090', 'http://pod:9091'],
  ['dashboards', '/etc/grafana/dashboards', '/var/lib/grafana/dashboards'],
  ['config', '0.0.0.0:9192', '0.0.0.0:9193'],
  ['envoy', 'port_value: 9901', 'port_value: 9902'],
];

describe('compose.yaml: references between its parts', () => {
  it('are all correct', () => {
    expect(problemsOf()).to.deep.equal([]);
  });

  for (const [file, part, by] of mistakes) {
    it(`reports ${by} in ${files[file]}`, () => {
      expect(texts[file]).to.contain(part);
      expect(problemsOf({ [file]: texts[file].replaceAll(part, () => by) })).not.to.deep.equal([]);
    });
  }
});
