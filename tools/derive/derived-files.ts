// The documents, the schema and the files for Envoy and Prometheus that are derived from the code. They are committed.
import { renderText } from '../../lab/kustomize.ts';
import { toJsonSchema } from '../../src/config/schema.ts';
import { makeConfigurationPage } from './configuration-page.ts';
import { makeDeployPage } from './deploy-page.ts';
import { makeHeadersPage } from './headers-page.ts';
import { makeLintPage } from './lint-page.ts';
import { makeProvidersPage } from './providers-page.ts';
import { renderedFiles } from './rendered-files.ts';
import { makeServices } from './services.ts';

export interface DerivedFile {
  readonly path: string;
  make(): Promise<string> | string;
}

export const derivedFiles: readonly DerivedFile[] = [
  { path: 'docs/configuration.md', make: makeConfigurationPage },
  { path: 'docs/headers.md', make: makeHeadersPage },
  { path: 'docs/envoy-lint.md', make: makeLintPage },
  { path: 'docs/providers/README.md', make: makeProvidersPage },
  { path: 'docs/deploy/README.md', make: makeDeployPage },
  { path: 'config.schema.json', make: () => `${JSON.stringify(toJsonSchema(), null, 2)}\n` },
  { path: 'proto/services.json', make: makeServices },
  ...renderedFiles,
  // One file to apply, made of all that is above.
  {
    path: 'k8s/quickstart.yaml',
    make: async () =>
      `# Rendered from overlays/demo: kubectl apply -f k8s/quickstart.yaml\n${await renderText('k8s/overlays/demo')}`,
  },
];
