// Writes the files that the containers of an overlay find mounted to a folder of this machine.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { configMapOf, type Manifest } from '../../../lab/manifest.ts';
import { testCertificate } from '../../../lab/test-certificate.ts';

export interface MountedFiles {
  /** Replaces /etc. */
  readonly directory: string;
  readonly config: string;
  /** Only if an Envoy is part of the pods: its bootstrap. */
  readonly bootstrap: string | undefined;
  remove(): Promise<void>;
}

interface Options {
  /** Edits a file's text last. */
  readonly edit?: ((text: string, name: string) => string) | undefined;
  /** The operator's Secrets by name, created as docs/deploy/ instructs; default: generated here. */
  readonly secrets?: Readonly<Record<string, Files>> | undefined;
}

type Files = Readonly<Record<string, string>>;

export async function layOutFiles(
  manifests: readonly Manifest[],
  { edit = text => text, secrets = madeSecrets() }: Options = {},
): Promise<MountedFiles> {
  const directory = await mkdtemp(join(tmpdir(), 'account-authz-etc-'));
  const local = (text: string): string => text.replaceAll('/etc/', `${directory}/`);
  const write = async (folder: string, files: Files = {}): Promise<void> => {
    await mkdir(join(directory, folder), { recursive: true });
    for (const [name, text] of Object.entries(files)) await writeFile(join(directory, folder, name), text);
  };
  const configMap = (name: string): Record<string, string> | undefined => {
    const data = configMapOf(manifests, name);
    return data && Object.fromEntries(Object.entries(data).map(([key, text]) => [key, edit(local(text), key)]));
  };
  const bootstrap = configMap('account-authz-envoy');
  await write('account-authz', configMap('account-authz-config'));
  await write('account-authz/tls', secrets['account-authz-tls']);
  await write('account-authz-revocation', configMap('account-authz-revocation'));
  await write('envoy', bootstrap);
  await write('envoy-tls', secrets['account-authz-client-tls']);
  return {
    directory,
    config: join(directory, 'account-authz', 'config.yaml'),
    bootstrap: bootstrap && join(directory, 'envoy', 'envoy.yaml'),
    remove: () => rm(directory, { recursive: true, force: true }),
  };
}

function madeSecrets(): Readonly<Record<string, Files>> {
  const server = certified('account-authz');
  const client = certified('envoy');
  return {
    'account-authz-tls': { 'tls.crt': server.cert, 'tls.key': server.key, 'ca.crt': client.authority },
    'account-authz-client-tls': { 'tls.crt': client.cert, 'tls.key': client.key, 'ca.crt': server.authority },
  };
}

function certified(name: string): { readonly cert: string; readonly key: string; readonly authority: string } {
  const authority = testCertificate({ name: `${name} authority`, isAuthority: true, addresses: [] });
  const { cert, key } = testCertificate({ name, dnsNames: [name], addresses: [], authority });
  return { cert, key, authority: authority.cert };
}
