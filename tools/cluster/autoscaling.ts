// The autoscalers of k8s/ on a cluster with the metrics API: they see the CPU of account-authz alone and scale out under load.
import { apply, kubectl, until, untilSettled } from './kubectl.ts';
import { type ClusterRun, measure, seconds, settle } from './run.ts';

/** For envoy-sidecar, whose autoscaler is a file of its own, and service, which has one. */
export async function autoscalingSteps(run: ClusterRun): Promise<void> {
  const { name, namespace, authz } = run.deployed;
  const isService = name === 'service';
  const autoscaler = ['hpa', '-n', namespace, authz.workload];
  if (!isService)
    await kubectl(['apply', '-n', namespace, '-f', 'k8s/overlays/envoy-sidecar/horizontal-pod-autoscaler.yaml']);
  const { apiVersion, kind, spec } = JSON.parse(await kubectl(['get', ...autoscaler, '-o', 'json']));
  const used = await until('the CPU of account-authz in the autoscaler', 120, async () => {
    const { status } = JSON.parse(await kubectl(['get', ...autoscaler, '-o', 'json']));
    const [metric] = status.currentMetrics ?? [];
    const { container, current } = metric?.containerResource ?? metric?.resource ?? {};
    return current === undefined ? undefined : `${current.averageValue} ${container ?? ''}`.trim();
  }).catch(String);
  const expected = isService ? 'the CPU of a pod' : 'the CPU of the container account-authz';
  const isGood = (isService ? /^\d+m$/ : /^\d+m account-authz$/).test(used);
  run.add({ what: 'the autoscaler sees what account-authz uses', expected, measured: used, isGood });
  await measure(run, {
    what: 'the autoscaler with a target of 5m for 600m, and without an autoscaler back to two pods',
    expected: 'three pods at its limit of three, nothing lost',
    async act() {
      const startMs = performance.now();
      const metric = isService ? 'resource' : 'containerResource';
      const patch = [
        { op: 'replace', path: '/spec/maxReplicas', value: authz.replicas + 1 },
        { op: 'replace', path: `/spec/metrics/0/${metric}/target/averageValue`, value: '5m' },
      ];
      await kubectl(['patch', ...autoscaler, '--type=json', '-p', JSON.stringify(patch)]);
      await untilSettled(namespace, authz.labels, authz.replicas + 1);
      const after = seconds((performance.now() - startMs) / 1000);
      // It would keep three for five minutes.
      await kubectl(['delete', ...autoscaler]);
      await kubectl(['scale', '-n', namespace, `deployment/${authz.workload}`, `--replicas=${authz.replicas}`]);
      await settle(run);
      return { measured: `three ready after ${after}` };
    },
  });
  if (isService) await apply([{ apiVersion, kind, metadata: { name: authz.workload, namespace }, spec }]);
}
