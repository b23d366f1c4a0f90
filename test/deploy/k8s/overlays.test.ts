// Every overlay of k8s/ as kustomize renders it: valid, hardened, consistent, accepted by check-config and by its Envoy.
import { execFile } from 'node:child_process';
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { type Document, parse, parseDocument } from 'yaml';
import { runCommand } from '../../../lab/command.ts';
import { allPages } from '../../../lab/document.ts';
import { envoyBinary, envoyVersions } from '../../../lab/envoy.ts';
import { overlays, render } from '../../../lab/kustomize.ts';
import { configMapOf, containerOf, type Manifest, podsOf } from '../../../lab/manifest.ts';
import { configSchema } from '../../../src/config/schema.ts';
import { freshFolder } from '../../support/fresh-folder.ts';
import { layOutFiles, type MountedFiles } from './mounted-files.ts';
import { podSecurityProblems } from './pod-security.ts';
import { type Overlay, relations } from './relations.ts';
import { createSchemaCheck } from './schemas.ts';

const run = promisify(execFile);
/** What the pages have a user change in a kustomization. */
const variants: Readonly<Record<string, (folder: string, kustomization: Document) => Promise<void>>> = {
  async 'envoy-sidecar over TCP, as docs/deploy/envoy-sidecar.md says'(folder, kustomization) {
    await edit(`${folder}/config.yaml`, config => config.set('listen', '127.0.0.1:9191'));
    const options = ['--config', `${folder}/config.yaml`, '--out', `${folder}/authz`];
    expect(await runCommand('render', ['kubernetes', ...options])).to.include({ code: 0 });
    kustomization.set('components', ['authz']);
    kustomization.delete('configMapGenerator');
    kustomization.deleteIn(['patches', 1]);
  },
  async 'envoy-sidecar with an autoscaler, a monitor and a revocation list'(folder, kustomization) {
    await cp(join(folder, '../../monitoring/pod-monitor.yaml'), join(folder, 'pod-monitor.yaml'));
    for (const file of ['horizontal-pod-autoscaler.yaml', 'pod-monitor.yaml']) kustomization.addIn(['resources'], file);
    const [, patch = ''] =
      /^ {2}# - (\{ patch: .*)$/m.exec(await readFile(`${folder}/kustomization.yaml`, 'utf8')) ?? [];
    kustomization.addIn(['patches'], kustomization.createNode(parse(patch)));
    await addRevocationList(folder, kustomization, text => text);
  },
  'service with a revocation list': (folder, kustomization) =>
    addRevocationList(folder, kustomization, text =>
      text
        .replace('account-authz/sidecar=true', 'app.kubernetes.io/name=account-authz')
        .replace('initContainers', 'containers'),
    ),
};

describe('k8s/', function () {
  this.timeout(600_000); // the first run builds kustomize
  const rendered = new Map<string, Overlay>();
  let schemaProblems: (manifests: readonly Manifest[]) => string[];

  before(async () => {
    schemaProblems = await createSchemaCheck();
    const shipped = overlays.map(async name => [name, await render(`k8s/overlays/${name}`)] as const);
    const changed = Object.entries(variants).map(
      async ([name, change]) => [name, await renderChanged(name, change)] as const,
    );
    for (const [name, manifests] of await Promise.all([...shipped, ...changed]))
      rendered.set(name, overlayOf(manifests));
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

  for (const name of [...overlays, ...Object.keys(variants)]) {
    it(`${name}: check-config and Envoy accept what is mounted`, async () => {
      const { manifests = [] } = rendered.get(name) ?? {};
      const files = await layOutFiles(manifests);
      const bootstrap = files.bootstrap === undefined ? [] : ['--envoy', files.bootstrap];
      const { code, stderr } = await runCommand('check-config', ['--config', files.config, ...bootstrap]);
      expect({ code, stderr }).to.deep.equal({ code: 0, stderr: '' });
      expect(await envoyOutput(manifests, files)).to.equal('');
    });
  }
});

/** The overlay that the name of a variant begins with, changed in a copy. */
async function renderChanged(name: string, change: NonNullable<(typeof variants)[string]>): Promise<Manifest[]> {
  const copy = freshFolder();
  await cp(fileURLToPath(new URL('../../../k8s', import.meta.url)), copy, { recursive: true });
  const folder = join(copy, 'overlays', name.split(' ')[0] ?? '');
  await edit(`${folder}/kustomization.yaml`, kustomization => change(folder, kustomization));
  return render(folder);
}

async function edit(file: string, change: (document: Document) => unknown): Promise<void> {
  const document = parseDocument(await readFile(file, 'utf8'));
  await change(document);
  await writeFile(file, document.toString());
}

/** As docs/revocation.md says, and with the ConfigMap that an operator makes by hand. */
async function addRevocationList(
  folder: string,
  kustomization: Document,
  adapt: (text: string) => string,
): Promise<void> {
  const page = allPages().find(({ path }) => path === 'docs/revocation.md');
  const block = page?.blocks.find(({ text }) => text.startsWith('patches:'))?.text ?? '';
  for (const patch of parse(adapt(block)).patches) kustomization.addIn(['patches'], kustomization.createNode(patch));
  const list = { name: 'account-authz-revocation', literals: ['revoked.jsonl={"jti":"nobody"}'] };
  kustomization.addIn(['configMapGenerator'], kustomization.createNode(list));
  const revocation = { file: '/etc/account-authz-revocation/revoked.jsonl' };
  await edit(`${folder}/config.yaml`, config => config.set('revocation', revocation));
}

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
