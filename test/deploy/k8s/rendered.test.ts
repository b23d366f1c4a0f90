// The output of `render` for Kubernetes, for a workload that is not the sample: kustomize accepts the component, and every object matches
// the schema that an API server with the custom kinds publishes.
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { runCommand } from '../../../lab/command.ts';
import { changed, writeFixture } from '../../../lab/config-file.ts';
import { readSnippet } from '../../../lab/document.ts';
import { render } from '../../../lab/kustomize.ts';
import { at, configMapOf, listAt, type Manifest, ofKind, parseManifests, podsOf } from '../../../lab/manifest.ts';
import { freshFolder } from '../../support/fresh-folder.ts';
import { createSchemaCheck } from './schemas.ts';

const project = fileURLToPath(new URL('../../../', import.meta.url));
const routes = [{ path: '/api/orders/:account_id/*' }, { path: '/v2/billing/*' }];
const open = {
  public: [{ path: '/healthz' }, { path: '/hooks/*', methods: ['POST'] }],
  account: { headers: ['x-org-id'], hosts: [':account_id.api.example.com', 'api.example.com'] },
  protectedResource: { resource: 'https://api.example.com/orders' },
};

const deployment = (name: string) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name, labels: { app: name } },
  spec: {
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers: [{ name, image: `${name}:1` }] } },
  },
});
const service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'orders', labels: { app: 'orders' } },
  spec: { selector: { app: 'orders' }, ports: [{ name: 'http', port: 80, targetPort: 9000 }] },
};

describe('the output of render for Kubernetes', () => {
  let folder: string;
  let schemaProblems: (manifests: readonly Manifest[]) => readonly string[];

  before(async function () {
    this.timeout(600_000); // the first run builds kustomize
    schemaProblems = await createSchemaCheck();
  });
  beforeEach(async () => {
    folder = freshFolder();
  });

  async function into(
    out: string,
    target: string,
    settings: Readonly<Record<string, unknown>>,
    ...args: readonly string[]
  ) {
    const config = writeFixture('workload.yaml', stringify(changed({ routes, ...settings })));
    const outcome = await runCommand('render', [target, '--config', config, '--out', out, ...args]);
    expect(outcome).to.include({ code: 0, stderr: '' });
  }

  for (const listen of ['127.0.0.1:9191', 'unix:/run/account-authz/authz.sock', undefined]) {
    it(`puts both sidecars into the Deployments with the labels and no others, with ${listen ?? 'a socket by default'}`, async () => {
      const options = ['--selector', 'app=orders', '--upstream', '127.0.0.1:9000'];
      await into(join(folder, 'authz'), 'kubernetes', { listen }, ...options);
      await writeFile(
        join(folder, 'workload.yaml'),
        [deployment('orders'), service, deployment('other')].map(each => stringify(each)).join('---\n'),
      );
      const kustomization = { kind: 'Kustomization', resources: ['workload.yaml'], components: ['authz'] };
      await writeFile(join(folder, 'kustomization.yaml'), stringify(kustomization));
      const manifests = await render(relative(project, folder));
      expect(schemaProblems(manifests)).to.deep.equal([]);
      const [orders, other] = podsOf(manifests);
      expect(orders?.spec.initContainers?.map(({ name }) => name)).to.deep.equal(['account-authz', 'envoy']);
      expect(other?.spec.initContainers).to.equal(undefined);
      const mounted = orders?.spec.initContainers?.flatMap(({ volumeMounts = [] }) =>
        volumeMounts.map(({ name }) => name),
      );
      expect([...new Set(mounted)].sort()).to.deep.equal(orders?.spec.volumes?.map(({ name }) => name).sort());
      const config = configMapOf(manifests, 'account-authz-config')?.['config.yaml'];
      expect(config)
        .to.include('/v2/billing/*')
        .and.to.include(listen ?? 'listen: unix:/run/account-authz/authz.sock');
      const bootstrap = configMapOf(manifests, 'account-authz-envoy')?.['envoy.yaml'];
      expect(bootstrap)
        .to.include('port_value: 9000')
        .and.to.include(listen === '127.0.0.1:9191' ? '9191' : 'authz.sock');
      expect(ofKind(manifests, 'Service').map(({ spec }) => at(spec, 'ports', 0, 'targetPort'))).to.deep.equal([
        'envoy-http',
      ]);
    });
  }

  it('is patched into a StatefulSet by the kustomization of docs/deploy/special-cases.md', async () => {
    await into(join(folder, 'authz'), 'kubernetes', {}, '--selector', 'app=orders');
    const { spec, ...rest } = deployment('orders');
    const set = { ...rest, kind: 'StatefulSet', spec: { ...spec, serviceName: 'orders' } };
    await writeFile(join(folder, 'statefulset.yaml'), [set, service].map(each => stringify(each)).join('---\n'));
    const snippet = readSnippet('docs/deploy/special-cases.md', 'yaml', 'kind: StatefulSet');
    await writeFile(join(folder, 'kustomization.yaml'), snippet);
    const [pod] = ofKind(await render(relative(project, folder)), 'StatefulSet');
    const names = at(pod?.spec, 'template', 'spec', 'initContainers');
    expect(names).to.have.length(2);
    expect(at(names, 0, 'name')).to.equal('account-authz');
    const volumes = listAt(pod?.spec, 'template', 'spec', 'volumes').map(
      each => at(each, 'configMap', 'name') ?? 'memory',
    );
    expect(volumes.join()).to.match(/^memory,account-authz-config-\w+,account-authz-envoy-\w+$/);
  });

  const others: readonly (readonly [
    target: string,
    settings: Readonly<Record<string, unknown>>,
    args: readonly string[],
  ])[] = [
    ['istio', {}, ['--selector', 'app=orders', '--namespace', 'shop']],
    ['istio', open, ['--name', 'open']],
    [
      'envoy-gateway',
      { ...open, listen: '0.0.0.0:9191', listenInsecure: true },
      ['--cors-origin', 'https://app.example.com', '--name', 'open', '--gateway', 'public'],
    ],
    [
      'envoy-gateway',
      { listen: '0.0.0.0:9191', listenInsecure: true },
      '--upstream orders:80 --name orders'.split(' '),
    ],
    [
      'envoy-gateway',
      { listen: '0.0.0.0:9191', tls: { certFile: '/tls.crt', keyFile: '/tls.key', clientCaFile: '/ca.crt' } },
      '--cors-origin https://app.example.com --trusted-hops 1 --namespace shop --idle-timeout 604799 --request-timeout 604799'.split(
        ' ',
      ),
    ],
    ...(['gateway-api', 'kgateway'] as const).map(
      target =>
        [
          target,
          { ...open, listen: '0.0.0.0:9191', tls: { certFile: '/tls.crt', keyFile: '/tls.key' } },
          ['--namespace', 'shop', '--authz-namespace', 'authz'],
        ] as const,
    ),
  ];
  for (const [target, settings, args] of others) {
    it(`matches the schemas of its kinds: ${target} ${args.join(' ')}`, async () => {
      await mkdir(join(folder, 'out'));
      await into(join(folder, 'out'), target, settings, ...args);
      const names = (await readdir(join(folder, 'out'))).filter(name => name !== 'mesh-config.yaml');
      const texts = await Promise.all(names.map(name => readFile(join(folder, 'out', name), 'utf8')));
      const manifests = texts.flatMap(text => parseManifests(text));
      expect(manifests.length).to.be.at.least(names.length);
      // No registry carries the kinds of kgateway: docs/deploy/gateway-api.md.
      const known = manifests.filter(({ apiVersion }) => !apiVersion.startsWith('gateway.kgateway.dev/'));
      expect(schemaProblems(known)).to.deep.equal([]);
    });
  }
});
