// `npm run rehearse`: rolls the pod of an overlay twice under load on this machine, from its rendered manifests and without a cluster.
// Exits with 0 only if no request failed. `-- --overlay NAME` selects another overlay, `-- --short` divides the waits by five.
import { parseArgs } from 'node:util';
import { renderText } from '../../lab/kustomize.ts';
import { parsePodPlan } from './pod-plan.ts';
import { rehearse } from './rehearsal.ts';
import { isLossless, reportOf } from './report.ts';

const { values: options } = parseArgs({
  options: {
    overlay: { type: 'string', default: 'envoy-sidecar' },
    short: { type: 'boolean', default: false },
  },
});

const startedAt = performance.now();
const say = (text: string): void => void process.stdout.write(`${text}\n`);
const plan = parsePodPlan(await renderText(`k8s/overlays/${options.overlay}`));
say(`${options.overlay}: ${plan.containers.map(({ name, kind }) => `${name} (${kind})`).join(', ')}`);
const rehearsal = await rehearse({
  plan,
  rolls: 2,
  pace: options.short ? 0.2 : 1,
  propagationSeconds: options.short ? 1 : 3,
  clients: { 'HTTP/1.1': 6, 'HTTP/2': 4, 'one request a connection': 2 },
  pauseMs: 40,
  onEvent: text => say(`${((performance.now() - startedAt) / 1000).toFixed(1).padStart(6)} s  ${text}`),
});
say('');
say(reportOf(rehearsal, process.stdout.isTTY === true));
say('');
say(isLossless(rehearsal) ? 'no request was lost' : 'requests were lost, or a pod did not behave');
process.exitCode = isLossless(rehearsal) ? 0 : 1;
