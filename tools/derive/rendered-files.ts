// The files in the repository that `account-authz render` makes, by the command line in their first line.
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { command as render } from '../../src/commands/render.ts';

interface Rendering {
  readonly args: readonly string[];
  /** Where each file goes, by the name that `render` gives it. */
  readonly paths: Readonly<Record<string, string>>;
}

const components = 'k8s/components';
const overlays = 'k8s/overlays';

const inFolder = (folder: string, ...names: readonly string[]): Rendering['paths'] =>
  Object.fromEntries(names.map(name => [name, `${folder}/${name}`]));

const renderings: readonly Rendering[] = [
  { args: ['envoy', '--config', 'config.example.yaml'], paths: { 'envoy.yaml': 'envoy.yaml' } },
  {
    args: ['envoy', '--config', `${overlays}/envoy-sidecar/config.yaml`],
    paths: inFolder(`${overlays}/envoy-sidecar`, 'envoy.yaml'),
  },
  {
    args: ['envoy', '--config', `${overlays}/service/config.yaml`],
    paths: inFolder(`${overlays}/service`, 'envoy.yaml', 'client-certificate.yaml', 'server-authority.yaml'),
  },
  {
    args: ['kubernetes', '--config', `${overlays}/envoy-sidecar/config.yaml`],
    paths: {
      'account-authz.yaml': `${components}/authz-sidecar/account-authz.yaml`,
      'envoy-container.yaml': `${components}/envoy-sidecar/envoy-container.yaml`,
    },
  },
  {
    args: ['istio', '--config', `${overlays}/istio/config.yaml`],
    paths: inFolder(
      `${overlays}/istio`,
      'authorization-policy.yaml',
      'envoy-filter.yaml',
      'mesh-config.yaml',
      'service-entry.yaml',
    ),
  },
  {
    args: ['envoy-gateway', '--config', `${overlays}/envoy-gateway/config.yaml`],
    paths: inFolder(
      `${overlays}/envoy-gateway`,
      'backend-tls.yaml',
      'client-traffic-policy.yaml',
      'http-route.yaml',
      'security-policy.yaml',
    ),
  },
];

/** Run in the folder of the project: command lines and file names are relative to it. */
export const renderedFiles = renderings.flatMap(({ args, paths }) =>
  Object.entries(paths).map(([name, path]) => ({ path, make: () => renderFile(args, name) })),
);

async function renderFile(args: readonly string[], name: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'account-authz-render-'));
  try {
    let problems = '';
    const ignored = { write: () => true };
    const code = await render([...args, '--out', folder], {
      stdin: process.stdin,
      stdout: ignored,
      stderr: { write: text => (problems += text) },
      log: { write: () => undefined, flushSync: () => undefined },
      env: {},
    });
    if (code !== 0) throw new Error(problems);
    return await readFile(join(folder, name), 'utf8');
  } finally {
    await rm(folder, { recursive: true });
  }
}
