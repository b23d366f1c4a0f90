// The commands of docs/deploy/ and the paths in the kustomizations name only objects, ports, containers and folders that exist.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { allPages } from '../../../lab/document.ts';
import { kustomizeBinary, type Overlay, overlays, render } from './kustomize.ts';
import { containersOf, type Manifest, ofKind, podsOf } from './manifest.ts';
import { keepsCounter } from './rules/istio.ts';

const project = new URL('../../../', import.meta.url);
const pages = overlays.filter(name => name !== 'envoy-sidecar-socket');
const textOf = (page: Overlay): string => readFileSync(new URL(`docs/deploy/${page}.md`, project), 'utf8');
const command =
  /kubectl -n (\S+) (?:rollout \w+|port-forward|logs|get|delete) (\w+)[/ ](\w[\w-]*)((?: +(?:-c +)?[\w:]+)*)/g;
/** Objects that the overlays do not contain. */
const foreign = ['istio-system', 'ask'];

function commandProblems(text: string, manifests: readonly Manifest[]): string[] {
  return Array.from(text.matchAll(command)).flatMap(([whole, namespace = '', kind = '', name = '', rest = '']) => {
    if (foreign.includes(namespace)) return [];
    const object = manifests.find(
      each => each.kind.toLowerCase() === kind && each.metadata.name === name && each.metadata.namespace === namespace,
    );
    const containers = podsOf(manifests).flatMap(containersOf);
    const ports =
      kind === 'service'
        ? ofKind(manifests, 'Service').flatMap(({ metadata, spec }) =>
            metadata.name === name ? spec.ports.map(({ port }) => port) : [],
          )
        : containers.flatMap(({ ports = [], args = [] }) => [
            ...ports.map(({ containerPort }) => containerPort),
            ...args.flatMap(each => /:(\d+)$/.exec(each)?.[1] ?? []).map(Number),
          ]);
    const forwarded = Array.from(rest.matchAll(/(?:^| )(?:\d+:)?(\d+)/g), ([, port]) => Number(port));
    const [, container] = /-c +([\w-]+)/.exec(rest) ?? [];
    const isRight =
      object !== undefined &&
      forwarded.every(port => ports.includes(port)) &&
      (container === undefined || containers.some(each => each.name === container || each.name.startsWith(container)));
    return isRight ? [] : [whole];
  });
}

const selection =
  /kubectl -n subscriptions (?:logs|get pods|top pod|describe pod|annotate pod) -l (\S+)(?: -c ([\w-]+))?/g;

/** The commands with a selector that no pod has, or with a container that the selected pods do not have. */
function selectionProblems(text: string, manifests: readonly Manifest[]): string[] {
  return Array.from(text.matchAll(selection)).flatMap(([whole, selector = '', container]) => {
    const [key = '', value] = selector.split('=');
    const selected = podsOf(manifests).filter(({ labels }) => key in labels && (value ?? labels[key]) === labels[key]);
    const isRight = selected.some(
      pod => container === undefined || containersOf(pod).some(({ name }) => name === container),
    );
    return isRight ? [] : [whole];
  });
}

describe('docs/deploy/: the commands', () => {
  before(async function () {
    this.timeout(600_000); // the first run builds kustomize
    await kustomizeBinary();
  });

  for (const page of pages) {
    it(`of ${page}.md name only objects of its overlay`, async () => {
      const manifests = await render(`k8s/overlays/${page}`);
      expect(textOf(page)).to.match(new RegExp(command.source));
      expect(commandProblems(textOf(page), manifests)).to.deep.equal([]);
      for (const each of manifests) each.metadata.namespace = 'elsewhere';
      expect(commandProblems(textOf(page), manifests)).not.to.deep.equal([]);
    });
  }

  it('of each page select pods of its overlay', async () => {
    for (const page of pages)
      expect(selectionProblems(textOf(page), await render(`k8s/overlays/${page}`)), page).to.deep.equal([]);
  });

  it('that forward a port name an existing one', async () => {
    const manifests = await render('k8s/overlays/service');
    for (const { spec } of ofKind(manifests, 'Service')) for (const port of spec.ports) port.port += 1;
    expect(commandProblems(textOf('service'), manifests)).not.to.deep.equal([]);
  });
});

describe('the commands for on-call engineers', () => {
  const text = allPages()
    .filter(({ path }) => path === 'docs/operations.md' || path === 'docs/runbooks.md')
    .map(page => page.text)
    .join('\n');
  const ofAuthz = text.replaceAll(/^.* -c envoy.*$/gm, '').replaceAll('app.kubernetes.io/name=subscriptions', '');

  for (const overlay of ['envoy-sidecar', 'envoy-sidecar-socket', 'service'] as const) {
    it(`select pods with account-authz and pods with Envoy on ${overlay}`, async () => {
      expect(Array.from(text.matchAll(selection))).to.have.length.of.at.least(20);
      expect(selectionProblems(text, await render(`k8s/overlays/${overlay}`))).to.deep.equal([]);
    });
  }

  for (const overlay of ['istio', 'envoy-gateway'] as const) {
    it(`select pods with account-authz on ${overlay}`, async () => {
      const manifests = await render(`k8s/overlays/${overlay}`);
      expect(selectionProblems(ofAuthz, manifests)).to.deep.equal([]);
      for (const { spec } of ofKind(manifests, 'Deployment'))
        delete spec.template.metadata.labels['account-authz/mode'];
      expect(selectionProblems(ofAuthz, manifests)).not.to.deep.equal([]);
    });
  }
});

// Seen with Envoy 1.40.0 and the patterns of Istio's bootstrap.
describe('the overlay istio', () => {
  it('keeps the counters that the pages and the alerts read', async () => {
    const manifests = await render('k8s/overlays/istio');
    const [deployment] = ofKind(manifests, 'Deployment');
    const patterns = deployment?.spec.template.metadata.annotations?.['sidecar.istio.io/statsInclusionRegexps'] ?? '';
    const isKept = (name: string): boolean => keepsCounter(manifests, name);
    const cluster = 'cluster.outbound|9191||account-authz.internal;';
    const read = [
      ...['error', 'denied', 'failure_mode_allowed'].map(name => `http.inbound_0.0.0.0_8000;.ext_authz.${name}`),
      ...['rq_timeout', 'rq_pending_overflow', 'cx_connect_fail'].map(name => `${cluster}.upstream_${name}`),
    ];
    expect(read.filter(name => !isKept(name))).to.deep.equal([]);
    expect(isKept('cluster.outbound|443||other.internal;.upstream_rq_timeout')).to.equal(false);
    expect(textOf('istio')).to.contain(`sidecar.istio.io/statsInclusionRegexps: '${patterns}'`);
  });
});

describe('k8s/: the kustomizations', () => {
  const folder = new URL('k8s/', project);
  const files = readdirSync(folder, { recursive: true })
    .map(String)
    .filter(name => name.endsWith('kustomization.yaml'));

  for (const file of files) {
    it(`${file} names only existing folders, also in comments`, () => {
      const text = readFileSync(new URL(file, folder), 'utf8');
      const paths = Array.from(text.matchAll(/(?:\.\.\/)+[\w./-]*\w/g), ([path]) => path);
      expect(paths.filter(path => !existsSync(new URL(path, new URL(file, folder))))).to.deep.equal([]);
    });
  }
});
