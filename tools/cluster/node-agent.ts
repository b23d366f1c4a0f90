// A pod on each node that sees all its processes: sends signals to a container's first process, which nothing inside the container can stop or kill,
// and reads the memory peak of its cgroup without adding to it.
import { apply, kubectl, type PodState, until } from './kubectl.ts';

export interface NodeAgent {
  signal(pod: PodState, container: string, signal: 'SIGSTOP' | 'SIGCONT' | 'SIGKILL'): Promise<void>;
  /** In bytes, since the start of the container. */
  memoryPeak(pod: PodState, container: string): Promise<number>;
}

/** ID ACTION: `node -e` in the agent. Prints the peak where the action is `peak`. */
const program = `
const fs = require('node:fs');
const [id, action] = process.argv.slice(1);
for (const pid of fs.readdirSync('/proc').filter(name => /^[0-9]+$/.test(name))) {
  try {
    if (!fs.readFileSync('/proc/' + pid + '/cgroup', 'utf8').includes(id)) continue;
    if (!/^NSpid:.*\\s1$/m.test(fs.readFileSync('/proc/' + pid + '/status', 'utf8'))) continue;
    if (action !== 'peak') process.kill(Number(pid), action);
    else for (const file of ['memory.peak', 'memory/memory.max_usage_in_bytes']) {
      const path = ['/proc', pid, 'root', 'sys', 'fs', 'cgroup', file].join('/');
      if (fs.existsSync(path)) console.log(fs.readFileSync(path, 'utf8').trim());
    }
    process.exit();
  } catch {}
}
process.exit(1);
`;

export async function startNodeAgent(namespace: string, image: string): Promise<NodeAgent> {
  const labels = { 'pod-security.kubernetes.io/enforce': 'privileged' };
  await apply([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } }]);
  const nodes: { items: readonly { metadata: { name: string } }[] } = JSON.parse(
    await kubectl(['get', 'nodes', '-o', 'json']),
  );
  const names = nodes.items.map(({ metadata }) => metadata.name);
  await apply(names.map(node => agentPod(node, namespace, image)));
  for (const name of names) {
    await until(`the agent on ${name}`, 120, async () => {
      const phase = ['get', 'pod', '-n', namespace, `agent-${name}`, '-o', 'jsonpath={.status.phase}'];
      return (await kubectl(phase)) === 'Running' ? name : undefined;
    });
  }
  const act = ({ node, name, containers }: PodState, container: string, action: string): Promise<string> => {
    const id = containers.find(each => each.name === container)?.containerID?.replace(/^.*:\/\//, '');
    if (id === undefined) throw new Error(`${name} runs no ${container}`);
    const agent = ['exec', '-n', namespace, `agent-${node}`, '--', '/nodejs/bin/node', '-e', program];
    return kubectl([...agent, id, action]);
  };
  return {
    async signal(pod, container, signal) {
      await act(pod, container, signal);
    },
    memoryPeak: async (pod, container) => Number(await act(pod, container, 'peak')),
  };
}

function agentPod(nodeName: string, namespace: string, image: string): object {
  const idle = "setInterval(() => undefined, 2 ** 30); process.once('SIGTERM', () => process.exit())";
  const container = {
    name: 'agent',
    image,
    imagePullPolicy: 'IfNotPresent',
    command: ['/nodejs/bin/node', '-e', idle],
    // Not privileged, which some API servers forbid.
    securityContext: {
      runAsUser: 0,
      capabilities: { add: ['KILL', 'SYS_PTRACE'] },
      appArmorProfile: { type: 'Unconfined' },
      seccompProfile: { type: 'Unconfined' },
    },
  };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `agent-${nodeName}`, namespace },
    spec: { nodeName, hostPID: true, terminationGracePeriodSeconds: 1, containers: [container] },
  };
}
