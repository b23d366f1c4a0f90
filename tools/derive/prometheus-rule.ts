// k8s/monitoring/prometheus-rule.yaml: the alerts as a PrometheusRule of the Prometheus operator.
import { parseDocument, stringify } from 'yaml';

export function makePrometheusRule(alerts: string): string {
  const rule = {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: 'account-authz' },
    spec: parseDocument(alerts).toJS(),
  };
  return `# k8s/monitoring/alerts.yaml for clusters with the Prometheus operator; npm run derive writes it.\n${stringify(rule, { lineWidth: 0 })}`;
}
