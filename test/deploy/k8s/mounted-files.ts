// Writes the files that the containers of an overlay find mounted to a folder of this machine.
import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { configMapOf, type Manifest, parseManifests } from '../../../lab/manifest.ts';
import { freshFolder } from '../../support/fresh-folder.ts';

export type MountedFiles = Awaited<ReturnType<typeof layOutFiles>>;

type Files = Readonly<Record<string, string>>;

export async function layOutFiles(manifests: readonly Manifest[]) {
  const directory = freshFolder();
  const write = async (folder: string, files: Files = {}): Promise<void> => {
    await mkdir(join(directory, folder), { recursive: true });
    for (const [name, text] of Object.entries(files))
      await writeFile(join(directory, folder, name), text.replaceAll('/etc/', `${directory}/`));
  };
  const bootstrap = configMapOf(manifests, 'account-authz-envoy');
  const secrets = await trialSecrets();
  await write('account-authz', configMapOf(manifests, 'account-authz-config'));
  await write('account-authz/tls', secrets['account-authz-tls']);
  await write('account-authz-revocation', configMapOf(manifests, 'account-authz-revocation'));
  await write('envoy', bootstrap);
  await write('envoy-tls', secrets['account-authz-client-tls']);
  return {
    directory,
    config: join(directory, 'account-authz', 'config.yaml'),
    bootstrap: bootstrap && join(directory, 'envoy', 'envoy.yaml'),
  };
}

let made: Promise<Readonly<Record<string, Files>>> | undefined;

/** The Secrets of k8s/make-trial-certificates.sh, by their names. */
function trialSecrets(): Promise<Readonly<Record<string, Files>>> {
  made ??= makeTrialSecrets();
  return made;
}

async function makeTrialSecrets(): Promise<Readonly<Record<string, Files>>> {
  const script = fileURLToPath(new URL('../../../k8s/make-trial-certificates.sh', import.meta.url));
  const { stdout } = await promisify(execFile)('bash', [script]);
  const decoded = (data: Files = {}): Files =>
    Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Buffer.from(text, 'base64').toString()]));
  return Object.fromEntries(parseManifests(stdout).map(({ metadata, data }) => [metadata.name, decoded(data)]));
}
