// What a cluster run deploys for the check at an Istio gateway or at a waypoint, whose pods istiod makes.
import { parse, stringify } from 'yaml';
import { kubectl } from './kubectl.ts';

export type Attach = 'gateway' | 'waypoint';

export function gatewayPods(gateway: string): string {
  return `gateway.networking.k8s.io/gateway-name=${gateway}`;
}

export function gatewayOptions(attach: Attach): readonly string[] {
  const place = attach === 'gateway' ? ['--selector', gatewayPods('edge')] : ['--upstream', 'subscriptions:80'];
  return ['--attach', attach, '--name', 'edge', '--namespace', 'subscriptions', ...place];
}

/** The gateway `edge` with a route for everything, and before the Service a waypoint. */
export function gatewayObjects(attach: Attach): string {
  const gateway = (name: string, type: string, port: number, protocol: string): string => `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: ${name} }
spec:
  gatewayClassName: ${type}
  infrastructure: { parametersRef: { group: '', kind: ConfigMap, name: two-pods } }
  listeners: [{ name: all, port: ${port}, protocol: ${protocol} }]
---`;
  return `${gateway('edge', 'istio', 80, 'HTTP')}${attach === 'waypoint' ? gateway('waypoint', 'istio-waypoint', 15_008, 'HBONE') : ''}
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: edge }
spec: { parentRefs: [{ name: edge }], rules: [{ backendRefs: [{ name: subscriptions, port: 80 }] }] }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: two-pods }
data: { deployment: "spec: { replicas: 2, template: { spec: { securityContext: { seccompProfile: { type: RuntimeDefault } } } } }" }
`;
}

export function gatewayKustomization(attach: Attach): object {
  const label = '- { op: add, path: /metadata/labels/istio.io~1';
  const useWaypoint = `
  - target: { kind: Service, name: subscriptions }
    patch: |
      ${label}use-waypoint, value: waypoint }
      ${label}ingress-use-waypoint, value: "true" }`;
  return parse(`
namespace: subscriptions
resources: [../../base, gateway.yaml, authorization-policy.yaml, destination-rule.yaml${attach === 'gateway' ? ', envoy-filter.yaml' : ''}]
components: [../../components/authz-service]
configMapGenerator: [{ name: account-authz-config, files: [config.yaml, ca.pem] }]
patches: # as docs/deploy/istio.md says
  - target: { kind: Deployment, name: account-authz }
    patch: '- { op: remove, path: /spec/template/spec/volumes/0/projected/sources/1 }'
  - target: { kind: Service, name: account-authz }
    patch: '- { op: remove, path: /spec/clusterIP }'${attach === 'waypoint' ? useWaypoint : ''}
`);
}

/** What is rendered takes the place of the provider with its name, as docs/deploy/istio.md says for the ConfigMap. */
export async function extendMesh(rendered: string): Promise<void> {
  const { data } = JSON.parse(await kubectl(['get', 'configmap', '-n', 'istio-system', 'istio', '-o', 'json']));
  const { extensionProviders: old = [], ...mesh } = parse(data.mesh);
  const { extensionProviders: added, ...settings } = parse(rendered);
  const others = old.filter(({ name }: { readonly name: string }) => name !== added[0].name);
  const merged = stringify({ ...mesh, ...settings, extensionProviders: [...others, ...added] });
  const patch = JSON.stringify({ data: { mesh: merged } });
  await kubectl(['patch', 'configmap', '-n', 'istio-system', 'istio', '--type=merge', '-p', patch]);
}
