// A pod on each node that sees all its processes: sends signals to a container's first process, which nothing inside the container can stop or kill,
// and reads peak and limit of its cgroup without adding to it.
import { parse } from 'yaml';
import { apply, kubectl, type PodState } from './kubectl.ts';

export interface NodeAgent {
  signal(pod: PodState, container: string, signal: 'SIGSTOP' | 'SIGCONT' | 'SIGKILL'): Promise<void>;
  /** In MiB: the peak since the start of the container, and the limit of its cgroup. */
  memory(pod: PodState, container: string): Promise<{ readonly peak: number; readonly limit: number }>;
}

/** ID ACTION: `node -e` in the agent. Prints peak and limit where the action is `memory`. */
const program = `
const fs = require('node:fs');
const [id, action] = process.argv.slice(1);
for (const pid of fs.readdirSync('/proc').filter(name => /^[0-9]+$/.test(name))) {
  try {
    if (!fs.readFileSync('/proc/' + pid + '/cgroup', 'utf8').includes(id)) continue;
    if (!/^NSpid:.*\\s1$/m.test(fs.readFileSync('/proc/' + pid + '/status', 'utf8'))) continue;
    if (action !== 'memory') process.kill(Number(pid), action);
    else for (const file of ['memory.peak', 'memory.max', 'memory/memory.max_usage_in_bytes', 'memory/memory.limit_in_bytes']) {
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
  const names = await kubectl(['get', 'nodes', '-o', 'jsonpath={.items[*].metadata.name}']);
  await apply(names.split(' ').map(node => agentPod(node, namespace, image)));
  await kubectl(['wait', 'pod', '-n', namespace, '--all', '--for=condition=Ready', '--timeout=120s']);
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
    async memory(pod, container) {
      const [peak = Number.NaN, limit = Number.NaN] = (await act(pod, container, 'memory'))
        .trim()
        .split('\n')
        .map(Number);
      return { peak: peak / 1024 ** 2, limit: limit / 1024 ** 2 };
    },
  };
}

/** Not privileged, which some API servers forbid. */
function agentPod(node: string, namespace: string, image: string): object {
  return parse(`
apiVersion: v1
kind: Pod
metadata: { name: "agent-${node}", namespace: ${namespace} }
spec:
  nodeName: "${node}"
  hostPID: true
  terminationGracePeriodSeconds: 1
  containers:
    - name: agent
      image: ${image}
      imagePullPolicy: IfNotPresent
      command: [/nodejs/bin/node, -e, "setInterval(() => undefined, 2 ** 30); process.once('SIGTERM', () => process.exit())"]
      securityContext:
        runAsUser: 0
        capabilities: { add: [KILL, SYS_PTRACE] }
        appArmorProfile: { type: Unconfined }
        seccompProfile: { type: Unconfined }
`);
}
