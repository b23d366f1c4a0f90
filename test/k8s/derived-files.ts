// The files under k8s/ that are made from others. They lie in the repository because kustomize reads nothing above its own root,
// and because a single file to apply is what people want first.
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { renderText } from './kustomize.ts';

const project = new URL('../../', import.meta.url);

interface DerivedFile {
  readonly path: string;
  make(): Promise<string>;
}

const read = (path: string): Promise<string> => readFile(new URL(path, project), 'utf8');

const loopbackEndpoint = `              - endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: 9191 } } }
              # A Unix socket instead: { address: { pipe: { path: /run/account-authz/authz.sock } } }
`;
const socketEndpoint = '              - endpoint: { address: { pipe: { path: /run/account-authz/authz.sock } } }\n';
// Envoy wants a name of its own before it reads certificates from files that may change.
const node = 'node: { id: envoy, cluster: subscriptions }\n\n';
const adminStart = '\nadmin:';
const clusterStart = '    - name: account-authz\n      type: STATIC\n';
const clusterEnd = '    - name: upstream\n';

/** In an order in which each is made after those that it needs. */
export const derivedFiles: readonly DerivedFile[] = [
  { path: 'k8s/components/envoy-bootstrap/envoy.yaml', make: () => read('envoy.yaml') },
  {
    path: 'k8s/components/uds/envoy.yaml',
    make: async () => replaceOnce(await read('envoy.yaml'), loopbackEndpoint, socketEndpoint),
  },
  {
    path: 'k8s/components/mutual-tls/envoy.yaml',
    async make() {
      const text = await read('envoy.yaml');
      const cluster = await read('k8s/components/mutual-tls/account-authz-cluster.yaml');
      const start = text.indexOf(clusterStart);
      const end = text.indexOf(clusterEnd, start);
      if (start === -1 || end === -1) throw new Error('envoy.yaml has no cluster account-authz where it was');
      const replaced = `${text.slice(0, start)}${cluster}\n${text.slice(end)}`;
      return replaceOnce(replaced, adminStart, `\n${node}${adminStart.trim()}`);
    },
  },
  {
    path: 'k8s/quickstart.yaml',
    make: async () =>
      `# Rendered from overlays/demo: kubectl apply -f k8s/quickstart.yaml\n${await renderText('k8s/overlays/demo')}`,
  },
];

export function readDerivedFile(path: string): Promise<string> {
  return read(path);
}

export async function writeDerivedFiles(): Promise<void> {
  for (const { path, make } of derivedFiles) await writeFile(fileURLToPath(new URL(path, project)), await make());
}

function replaceOnce(text: string, part: string, by: string): string {
  if (text.split(part).length !== 2) throw new Error(`envoy.yaml does not have this once:\n${part}`);
  return text.replace(part, by);
}
