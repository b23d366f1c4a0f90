// The derived files under k8s/ are up to date, and a real Envoy accepts every bootstrap as it is mounted.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { envoyBinary, envoyVersions } from '../../../lab/envoy.ts';
import { derivedFiles, readDerivedFile } from './derived-files.ts';
import { kustomizeBinary, overlays, render } from './kustomize.ts';
import { containerOf, type Manifest, podsOf } from './manifest.ts';
import { layOutFiles } from './mounted-files.ts';

const run = promisify(execFile);

describe('k8s/: derived files', () => {
  before(async function () {
    this.timeout(600_000); // the first run builds kustomize
    await kustomizeBinary();
  });

  for (const { path, make } of derivedFiles) {
    it(`${path} is up to date: npm run derive`, async () => {
      expect(await readDerivedFile(path)).to.equal(await make());
    });
  }
});

describe('k8s/: the Envoy of an overlay', () => {
  for (const overlay of overlays.filter(name => name !== 'istio' && name !== 'envoy-gateway')) {
    it(`${overlay}: accepts its bootstrap without a warning`, async () => {
      const manifests = await render(`k8s/overlays/${overlay}`);
      const { valid, output } = await verdictOf(manifests);
      expect({ valid, output }).to.deep.equal({ valid: true, output: '' });
    });
  }

  for (const [overlay, part, by] of [
    ['envoy-sidecar', 'path_separated_prefix', 'path_separated'],
    ['service', 'client-certificate.yaml', 'client.yaml'],
    ['service', '"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext', ''],
  ] as const) {
    it(`${overlay}: refuses it with ${by || 'a part left out'} in place of ${part}`, async () => {
      const manifests = await render(`k8s/overlays/${overlay}`);
      const { valid } = await verdictOf(manifests, (text, name) =>
        name === 'envoy.yaml' ? text.replaceAll(part, by) : text,
      );
      expect(valid).to.equal(false);
    });
  }
});

/** Validates with the overlay's version of Envoy and the arguments of its container. */
async function verdictOf(
  manifests: readonly Manifest[],
  edit?: (text: string, name: string) => string,
): Promise<{ readonly valid: boolean; readonly output: string }> {
  const [container] = podsOf(manifests).flatMap(pod => containerOf(pod, 'envoy') ?? []);
  const version = container?.image.split('-v')[1];
  expect(version).to.be.oneOf([...envoyVersions]);
  const files = await layOutFiles(manifests, { edit });
  try {
    const args = (container?.args ?? []).map(each => each.replace('/etc/', `${files.directory}/`));
    const { stderr } = await run(await envoyBinary(version), ['--mode', 'validate', '--log-level', 'warning', ...args]);
    return { valid: true, output: stderr };
  } catch (error) {
    return { valid: false, output: String(error) };
  } finally {
    await files.remove();
  }
}
