// The documents, the schema and the files for Envoy and Prometheus that are derived from the code. They are committed.
import { fileURLToPath } from 'node:url';
import protobuf from 'protobufjs';
import { renderText } from '../../lab/kustomize.ts';
import { toJsonSchema } from '../../src/config/schema.ts';
import { makeConfigurationPage } from './configuration-page.ts';
import { makeDeployPage } from './deploy-page.ts';
import { makeHeadersPage } from './headers-page.ts';
import { makeLintPage } from './lint-page.ts';
import { makeProvidersPage } from './providers-page.ts';
import { renderedFiles } from './rendered-files.ts';

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

/** The two services and their messages, as protobufjs writes what it reads of proto/. */
function makeServices(): string {
  const root = new protobuf.Root();
  root.resolvePath = (_origin, file) => fileURLToPath(new URL(`../../proto/${file}`, import.meta.url));
  root.loadSync(['envoy/service/auth/v3/external_auth.proto', 'grpc/health/v1/health.proto'], { keepCase: true });
  return `${JSON.stringify(root.toJSON(), null, 2)}\n`;
}
