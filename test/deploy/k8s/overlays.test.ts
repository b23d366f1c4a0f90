// Every overlay of k8s/ as kustomize renders it: valid, hardened, consistent, accepted by check-config and by its Envoy.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { parse } from 'yaml';
import { runCommand } from '../../../lab/command.ts';
import { envoyBinary, envoyVersions } from '../../../lab/envoy.ts';
import { overlays, render } from '../../../lab/kustomize.ts';
import { configMapOf, containerOf, type Manifest, podsOf } from '../../../lab/manifest.ts';
import { configSchema } from '../../../src/config/schema.ts';
import { layOutFiles, type MountedFiles } from './mounted-files.ts';
import { podSecurityProblems } from './pod-security.ts';
import { type Overlay, relations } from './relations.ts';
import { createSchemaCheck } from './schemas.ts';

const run = promisify(execFile);
const folders: Readonly<Record<string, string>> = {
  ...Object.fromEntries(overlays.map(name => [name, `k8s/overlays/${name}`])),
  'the plain form': 'test/fixtures/k8s-variants/plain',
  'every component': 'test/fixtures/k8s-variants/everything',
  'the service with a revocation list': 'test/fixtures/k8s-variants/service-revocation',
};

describe('k8s/', function () {
  this.timeout(600_000); // the first run builds kustomize
  const rendered = new Map<string, Overlay>();
  let schemaProblems: (manifests: readonly Manifest[]) => string[];

  before(async () => {
    schemaProblems = await createSchemaCheck();
    const all = await Promise.all(
      Object.entries(folders).map(async ([name, folder]) => [name, await render(folder)] as const),
    );
    for (const [name, manifests] of all) rendered.set(name, overlayOf(manifests));
  });

  const inEach = (problems: (overlay: Overlay) => readonly string[]): readonly string[] =>
    [...rendered].flatMap(([name, overlay]) => problems(overlay).map(each => `${name}: ${each}`));

  it('matches the schemas of an API server', () => {
    expect(inEach(({ manifests }) => schemaProblems(manifests))).to.deep.equal([]);
  });

  it('meets the Pod Security Standard restricted, and more', () => {
    expect(inEach(({ manifests }) => podSecurityProblems(manifests))).to.deep.equal([]);
  });

  for (const [fact, problems] of Object.entries(relations)) {
    it(fact, () => {
      expect(inEach(problems)).to.deep.equal([]);
    });
  }

  for (const name of Object.keys(folders)) {
    it(`${name}: check-config and Envoy accept what is mounted`, async () => {
      const { manifests = [] } = rendered.get(name) ?? {};
      const files = await layOutFiles(manifests);
      try {
        const bootstrap = files.bootstrap === undefined ? [] : ['--envoy', files.bootstrap];
        const { code, stderr } = await runCommand('check-config', ['--config', files.config, ...bootstrap]);
        expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
        expect(await envoyOutput(manifests, files)).to.equal('');
      } finally {
        await files.remove();
      }
    });
  }
});

function overlayOf(manifests: readonly Manifest[]): Overlay {
  const config = configSchema.parse(parse(configMapOf(manifests, 'account-authz-config')?.['config.yaml'] ?? ''));
  const texts = Object.entries(configMapOf(manifests, 'account-authz-envoy') ?? {});
  return { manifests, config, envoy: Object.fromEntries(texts.map(([name, text]) => [name, parse(text)])) };
}

/** What Envoy of the version of the overlay prints with the arguments of its container; nothing without one. */
async function envoyOutput(manifests: readonly Manifest[], { directory }: MountedFiles): Promise<string> {
  const [container] = podsOf(manifests).flatMap(pod => containerOf(pod, 'envoy') ?? []);
  if (container === undefined) return '';
  const version = container.image.split('-v')[1];
  expect(version).to.be.oneOf([...envoyVersions]);
  const args = (container.args ?? []).map(each => each.replace('/etc/', `${directory}/`));
  const { stderr } = await run(await envoyBinary(version), ['--mode', 'validate', '--log-level', 'warning', ...args]);
  return stderr;
}
