// The clusters of the service behind Envoy.
import { endpointSettings, hostSettings, protocolOptions } from '../authz-cluster.ts';
import { typed } from '../extension.ts';
import { toMembers } from '../setting.ts';
import type { EnvoySettings } from '../settings.ts';
import { above, inline, type Members } from '../tree.ts';

export function upstreamClusters({ upstream, upstreamProtocol }: EnvoySettings): readonly Members[] {
  const http1 = {
    explicit_http_config: inline({ http_protocol_options: {} }),
    common_http_protocol_options: above(
      'Must be shorter than the keep-alive timeout of the service (Node: 5 s): otherwise a request can meet a closing connection (503).',
      inline({ idle_timeout: '4s' }),
    ),
  };
  const http2 = { explicit_http_config: inline({ http2_protocol_options: {} }) };
  const cluster = (name: string, options: Members): Members => ({
    ...toMembers(hostSettings(name, upstream)),
    connect_timeout: '1s',
    ...toMembers(endpointSettings(name, upstream)),
    typed_extension_protocol_options: {
      [protocolOptions]: typed('upstreams.http.v3.HttpProtocolOptions', options),
    },
    circuit_breakers: {
      thresholds: [inline({ max_connections: 1024, max_pending_requests: 1024, max_requests: 4096 })],
    },
  });
  const main = cluster('upstream', upstreamProtocol === 'http2' ? http2 : http1);
  return upstreamProtocol === 'auto' ? [main, cluster('upstream-grpc', http2)] : [main];
}
