// Leaves out what no connection to the protected service takes: in Envoys that take over all connections of a machine, as in Istio.
import type { Cluster } from './cluster.ts';
import type { ConnectionManager, Listener } from './listener.ts';

/**
 * A filter chain for no port does not get connections to a port that has a chain of its own. If such a chain asks account-authz, the
 * service is at its port, and what forwards each connection to its original destination leads to other services.
 */
export function atOwnPorts(
  listener: Listener,
  clusters: ReadonlyMap<string, Cluster>,
  isChecked: (manager: ConnectionManager) => boolean,
): Listener {
  if (!listener.managers.some(each => !each.isForOtherPorts && isChecked(each))) return listener;
  const keepsPort = (name: string | undefined) => clusters.get(name ?? '')?.keepsDestination === true;
  return {
    ...listener,
    managers: listener.managers.filter(
      ({ isForOtherPorts, targets, dynamic }) =>
        !isForOtherPorts || dynamic.length > 0 || !targets.every(({ cluster }) => keepsPort(cluster)),
    ),
    tcpTargets: listener.tcpTargets.filter(
      ({ cluster, isForOtherPorts }) => !isForOtherPorts || !keepsPort(cluster.text()),
    ),
  };
}
