// account-authz as a Service of Kubernetes: where the policies of a gateway find it, and what lets them refer to another namespace.
import type { TcpAddress } from '../../text/listen-address.ts';
import { isInPod, type RenderSettings } from '../envoy-settings/settings.ts';
import { inline, type Members } from '../envoy-settings/tree.ts';
import { manifest, type RenderedFile, renderedFile } from './rendered-files.ts';

export const gatewayApi = 'gateway.networking.k8s.io';
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
function otherNamespace({ authzNamespace, namespace }: RenderSettings): string | undefined {
  return authzNamespace === namespace ? undefined : authzNamespace;
}

/** Lets the objects of this group and kind refer to the Service. */
export function referenceGrant(settings: RenderSettings, from: Members): RenderedFile {
  const namespace = otherNamespace(settings);
  const metadata = { name: `account-authz-from-${settings.namespace}`, namespace };
  const grant = manifest(`${gatewayApi}/v1beta1`, 'ReferenceGrant', metadata, {
    from: [inline({ ...from, namespace: settings.namespace })],
    to: [inline({ group: '', kind: 'Service', name: serviceAddress(settings).host })],
  });
  const introduction = ['Lets the policy name account-authz in another namespace.'];
  return renderedFile('reference-grant.yaml', namespace === undefined ? [] : [grant], introduction);
}

/** The gateway speaks TLS to account-authz, and only to one whose certificate says so. */
export function backendTlsPolicy(settings: RenderSettings, authority: Members): Members {
  const { host } = serviceAddress(settings);
  const metadata = { name: 'account-authz', namespace: otherNamespace(settings) ?? settings.namespace };
  return manifest(`${gatewayApi}/v1`, 'BackendTLSPolicy', metadata, {
    targetRefs: [inline({ group: '', kind: 'Service', name: host, sectionName: 'grpc' })],
    validation: { caCertificateRefs: [inline({ group: '', ...authority })], hostname: host },
  });
}

/** In the words of Envoy Gateway and of Istio. */
export const passiveHealthCheck = {
  splitExternalLocalOriginErrors: true,
  consecutiveLocalOriginFailures: 2,
  interval: '1s',
  baseEjectionTime: '5s',
  maxEjectionPercent: 50,
} as const;
