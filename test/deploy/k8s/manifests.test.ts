// Every overlay of k8s/ as kustomize renders it: valid, hardened, and consistent with the configuration, Envoy and the code. Mistakes are
// planted in planted-mistakes.test.ts and generated in machine-mistakes.test.ts.
import { expect } from 'chai';
import { runCommand } from '../../../lab/command.ts';
import type { Surroundings } from './facts.ts';
import { kustomizeBinary, overlays, render } from './kustomize.ts';
import { type Manifest, withoutHash } from './manifest.ts';
import { layOutFiles, type MountedFiles } from './mounted-files.ts';
import { overlayProblems } from './overlay-problems.ts';
import { createSchemaCheck } from './schemas.ts';
import { loadSurroundings } from './surroundings.ts';

const folders: Readonly<Record<string, string>> = {
  ...Object.fromEntries(overlays.map(name => [name, `k8s/overlays/${name}`])),
  'the plain form': 'test/fixtures/k8s-variants/plain',
  'every component': 'test/fixtures/k8s-variants/everything',
  'the service with a revocation list': 'test/fixtures/k8s-variants/service-revocation',
};

type Rule = 'the schemas' | 'check-config' | 'the rules';

describe('k8s/', () => {
  const rendered = new Map<string, Manifest[]>();
  let schemaProblems: (manifests: readonly Manifest[]) => string[];
  let surroundings: Surroundings;

  before(async function () {
    this.timeout(600_000); // the first run builds kustomize
    await kustomizeBinary();
    schemaProblems = await createSchemaCheck();
    surroundings = await loadSurroundings();
    await Promise.all(Object.entries(folders).map(async ([name, folder]) => rendered.set(name, await render(folder))));
  });

  const manifestsOf = (name: string): Manifest[] => structuredClone(rendered.get(name) ?? []);

  async function problemsOf(rule: Rule, manifests: readonly Manifest[]) {
    switch (rule) {
      case 'the schemas':
        return schemaProblems(manifests);
      case 'the rules':
        return overlayProblems(manifests, surroundings);
      case 'check-config': {
        const files = await layOutFiles(manifests);
        try {
          return await checkConfigProblems(files);
        } finally {
          await files.remove();
        }
      }
    }
  }

  for (const name of Object.keys(folders)) {
    describe(name, () => {
      for (const rule of ['the schemas', 'check-config', 'the rules'] as const) {
        it(`has no problem with ${rule}`, async () => {
          expect(await problemsOf(rule, manifestsOf(name))).to.deep.equal([]);
        });
      }

      it('rolls its pods when a mounted file has changed', () => {
        const configMaps = manifestsOf(name).filter(({ kind }) => kind === 'ConfigMap');
        expect(configMaps).not.to.deep.equal([]);
        for (const { metadata } of configMaps) expect(metadata.name).not.to.equal(withoutHash(metadata.name));
      });
    });
  }

  it('uses each of its components', () => {
    const used = new Set([...rendered.values()].flat().map(({ kind }) => kind));
    expect([...used]).to.include.members([
      'HorizontalPodAutoscaler',
      'PodMonitor',
      'NetworkPolicy',
      'PodDisruptionBudget',
    ]);
  });
});

/** Standard error of the command, given Envoy's bootstrap if there is one. */
async function checkConfigProblems({ config, bootstrap }: MountedFiles): Promise<string[]> {
  const args = ['--config', config, ...(bootstrap === undefined ? [] : ['--envoy', bootstrap])];
  const { code, stderr } = await runCommand('check-config', args);
  const problems = stderr === '' ? [] : [stderr];
  return code === 0 ? problems : [`exit code ${code}`, ...problems];
}
