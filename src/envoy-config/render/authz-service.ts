// account-authz as a Service of Kubernetes: where the policies of a gateway find it, and what lets them refer to another namespace.
import type { TcpAddress } from '../../text/listen-address.ts';
import { isInPod, type RenderSettings } from '../settings.ts';
import { inline, type Members, type Tree } from '../tree.ts';
import { type RenderedFile, renderedFile } from './rendered-files.ts';

const defaultPort = 9191;

/** Where a gateway finds account-authz: never in its own pod. */
export function serviceAddress({ authz, authzHost }: RenderSettings): TcpAddress {
  if (authz.kind === 'tcp' && !isInPod(authz)) return authz;
  return { kind: 'tcp', host: authzHost, port: authz.kind === 'tcp' ? authz.port : defaultPort };
}

/** A BackendObjectReference of the Gateway API. */
export function serviceReference(settings: RenderSettings): Members {
  const { host: name, port } = serviceAddress(settings);
  return { group: '', kind: 'Service', name, namespace: otherNamespace(settings), port };
}

/** Undefined: that of the policies. */
export function otherNamespace({ authzNamespace, namespace }: RenderSettings): string | undefined {
  return authzNamespace === namespace ? undefined : authzNamespace;
}

/** Lets the objects of this group and kind refer to the Service. */
export function referenceGrant(
  settings: RenderSettings,
  from: { readonly group: string; readonly kind: string },
): readonly RenderedFile[] {
  const namespace = otherNamespace(settings);
  if (namespace === undefined) return [];
  const grant: Tree = {
    apiVersion: 'gateway.networking.k8s.io/v1beta1',
    kind: 'ReferenceGrant',
    metadata: { name: `account-authz-from-${settings.namespace}`, namespace },
    spec: {
      from: [inline({ ...from, namespace: settings.namespace })],
      to: [inline({ group: '', kind: 'Service', name: serviceAddress(settings).host })],
    },
  };
  return [renderedFile('reference-grant.yaml', [grant], ['Lets the policy name account-authz in another namespace.'])];
}

/** In the words of Envoy Gateway and of Istio. */
export const passiveHealthCheck = {
  splitExternalLocalOriginErrors: true,
  consecutiveLocalOriginFailures: 2,
  interval: '1s',
  baseEjectionTime: '5s',
  maxEjectionPercent: 50,
} as const;
