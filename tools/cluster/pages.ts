// The pages of docs/deploy and docs/revocation.md on real pods: each block with kubectl or a request, exactly as written and in the order of
// the page, by a reader who has set the issuer of the overlay.
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseDocument } from 'yaml';
import { allPages, commandsOf } from '../../lab/document.ts';
import { type Authentication, audience } from './authentication.ts';
import { gatewaySteps } from './gateway.ts';
import { forward, kubectl, podsOf, until, untilSettled } from './kubectl.ts';
import type { Row } from './report.ts';
import { type Shell, startShell } from './shell.ts';

/** What any cluster can run, what needs Istio, and what needs the controller of Envoy Gateway. */
const steps = { pages: clusterPages, 'pages of istio': meshPages, 'pages of envoy-gateway': gatewayPages };
export type PageSection = keyof typeof steps;
export const pageSections = Object.keys(steps) as readonly PageSection[];

export interface Pages {
  readonly authentication: Authentication;
  add(row: Omit<Row, 'deployment'>): void;
}

type Overlay = 'envoy-sidecar' | 'envoy-sidecar-socket' | 'service' | 'istio' | 'envoy-gateway';

const app = 'app.kubernetes.io/name=subscriptions';
const component = { 'envoy-sidecar': 'revocation', service: 'revocation-service' } as const;

export function pageSteps(section: PageSection, pages: Pages): Promise<void> {
  return steps[section](pages);
}

async function clusterPages(pages: Pages): Promise<void> {
  await inShell(pages, [], (shell, pages) => follow(pages, shell, 'docs/deploy/demo.md', () => true));
  await inShell(pages, ['envoy-sidecar', 'envoy-sidecar-socket'], async (shell, pages) => {
    await follow(pages, shell, 'docs/deploy/envoy-sidecar.md', () => true);
    await untilSettled('subscriptions', app, 2);
  });
  for (const overlay of ['envoy-sidecar', 'service'] as const)
    await inShell(pages, [overlay], async (shell, pages) => {
      const deployment = overlay === 'service' ? 'deployment/account-authz' : 'deployment/subscriptions';
      await follow(pages, shell, `docs/deploy/${overlay}.md`, text => !text.includes('overlays/envoy-sidecar-socket'));
      await changeConfig(shell, overlay, config => config.setIn(['log'], { level: 'debug' }));
      if (overlay === 'service') await shell.run('kubectl apply -k k8s/overlays/service');
      const rolls = (text: string): boolean => /rollout/.test(text) && text.includes(deployment);
      await follow(pages, shell, 'docs/operations.md', rolls);
      await revocation(pages, shell, overlay);
      if (overlay === 'envoy-sidecar') await follow(pages, shell, 'docs/deploy/README.md', rolls);
    });
}

function meshPages(pages: Pages): Promise<void> {
  return inShell(pages, ['istio'], async (shell, pages) => {
    const file = join(shell.folder, 'k8s/base/namespace.yaml');
    const namespace = await readFile(file, 'utf8');
    await writeFile(file, namespace.replace('enforce: restricted', 'enforce: privileged'));
    await follow(pages, shell, 'docs/deploy/istio.md', () => true);
  });
}

function gatewayPages(pages: Pages): Promise<void> {
  return inShell(pages, ['envoy-gateway'], async (shell, pages) => {
    // A cluster without load balancers.
    const provider = { type: 'Kubernetes', kubernetes: { envoyService: { type: 'ClusterIP' }, envoyDeployment } };
    const patch = `- { op: add, path: /spec/provider, value: ${JSON.stringify(provider)} }`;
    await edit(join(shell.folder, 'k8s/overlays/envoy-gateway/kustomization.yaml'), kustomization =>
      kustomization.addIn(['patches'], kustomization.createNode({ target: { kind: 'EnvoyProxy' }, patch })),
    );
    const isPatch = (text: string): boolean => text.includes('envoypatchpolicy');
    await follow(pages, shell, 'docs/deploy/envoy-gateway.md', text => !isPatch(text));
    await follow(pages, shell, 'docs/operations.md', text => text.includes('egctl'));
    await gatewaySteps(pages.authentication, 'as rendered', pages.add);
    await follow(pages, shell, 'docs/deploy/envoy-gateway.md', isPatch);
    await gatewaySteps(pages.authentication, 'with the EnvoyPatchPolicy', pages.add);
  });
}

/** The image of the release line of Envoy Gateway 1.9, by its tag alone. */
const envoyDeployment = { container: { image: 'docker.io/envoyproxy/envoy:distroless-v1.39.3' } };
const gatewayAddress = "kubectl -n subscriptions get gateway subscriptions -o jsonpath='{.status.addresses[0].value}'";

/** The overlays have the issuer of this run, and rows begin with their names. The namespace of the sample is removed before and afterwards. */
async function inShell(
  { authentication, add: addRow }: Pages,
  overlays: readonly Overlay[],
  use: (shell: Shell, pages: Pages) => Promise<void>,
): Promise<void> {
  const shell = await startShell();
  const names = overlays.join(', ') || 'quickstart';
  const add: Pages['add'] = row => addRow({ ...row, what: `${names}: ${row.what}` });
  const clean = ['delete', 'namespace', 'subscriptions', '--ignore-not-found', '--wait=true'];
  try {
    await kubectl(clean);
    for (const overlay of overlays) await setIssuer(shell, overlay, authentication);
    await use(shell, { authentication, add });
  } catch (error) {
    add({ what: 'the pages', expected: 'end', measured: String(error), isGood: false });
  } finally {
    await shell.stop();
    await kubectl(clean);
  }
}

/** Adds one row for the chosen blocks of a page. */
async function follow(pages: Pages, shell: Shell, path: string, chooses: (text: string) => boolean): Promise<void> {
  const blocks = allPages().find(page => page.path === path)?.blocks ?? [];
  const measured: string[] = [];
  let isGood = true;
  for (const block of blocks) {
    const text = commandsOf(block);
    if (text === undefined || !/kubectl|egctl|http:\/\/127\.0\.0\.1:80[89]0/.test(text) || !chooses(text)) continue;
    // Nobody opens another terminal in less.
    if (!text.includes('kubectl')) await delay(10_000);
    const outcome = await shell.run(text.replaceAll('http://ADDRESS/', `http://$(${gatewayAddress})/`));
    const expected = statusesIn(text);
    const statuses = [...outcome.stdout.matchAll(/HTTP\/[\d.]+ (\d{3})/g)].map(([, status]) => status);
    const isAsWritten =
      outcome.code === 0 &&
      String(statuses) === String(expected.map(({ status }) => status)) &&
      expected.every(({ reason }) => outcome.stdout.includes(`"reason":"${reason}"`) || reason === '');
    isGood &&= isAsWritten;
    if (!isAsWritten) process.stderr.write(`${path}:${block.line}\n${outcome.stdout}\n`);
    measured.push(`line ${block.line}: exit ${outcome.code}${statuses.map(status => `, ${status}`).join('')}`);
  }
  const expected = 'exit 0, and the answers that the page names';
  pages.add({
    what: `${path}, as written`,
    expected,
    measured: measured.join('; '),
    isGood: isGood && measured.length > 0,
  });
}

/** What the comments say that begin with a status: `# 403 account_mismatch`. */
function statusesIn(text: string): readonly { readonly status: string; readonly reason: string }[] {
  const comments = [...text.matchAll(/# (\d{3})\b(?: ([a-z]+_[a-z]+))?/g)];
  return comments.map(([, status = '', reason = '']) => ({ status, reason }));
}

/** docs/revocation.md: the set-up, then the component and the setting, then what is for on call. */
async function revocation(pages: Pages, shell: Shell, overlay: keyof typeof component): Promise<void> {
  const path = 'docs/revocation.md';
  const isSetUp = (text: string): boolean => text.startsWith('touch revoked.jsonl');
  await follow(pages, shell, path, isSetUp);
  const kustomization = join(shell.folder, 'k8s/overlays', overlay, 'kustomization.yaml');
  await edit(kustomization, document => document.addIn(['components'], `../../components/${component[overlay]}`));
  await changeConfig(shell, overlay, config =>
    config.setIn(['revocation'], { file: '/etc/account-authz-revocation/revoked.jsonl' }),
  );
  await shell.run(`kubectl apply -k k8s/overlays/${overlay}`);
  for (const name of overlay === 'service' ? ['account-authz', 'subscriptions'] : ['subscriptions'])
    await shell.run(`kubectl -n subscriptions rollout status deployment/${name}`);
  await untilSettled('subscriptions', app, 2);
  await cp(join(shell.folder, 'k8s/overlays', overlay, 'config.yaml'), join(shell.folder, 'config.yaml'));
  const token = await pages.authentication.sign({ uid: 'user-mallory' });
  const before = await ask(token);
  await follow(pages, shell, path, text => !isSetUp(text) && !text.includes('grep -E'));
  const after = await until('a revoked token', 20, async () => {
    const answer = await ask(token);
    return answer.startsWith('401') ? answer : undefined;
  }).catch(String);
  await follow(pages, shell, path, text => text.includes('grep -E'));
  const measured = `${before}, then ${after}`;
  const expected = '200, then 401 token_revoked';
  pages.add({ what: `${path}: the revoked user`, expected, measured, isGood: measured === expected });
}

async function ask(token: string): Promise<string> {
  const [pod] = await podsOf('subscriptions', app);
  const { url, stop } = await forward('subscriptions', `pod/${pod?.name}`, 8080);
  try {
    const headers = { authorization: `Bearer ${token}` };
    const answer = await fetch(`${url}/api/subscriptions/accounts/acme`, { headers });
    const body = (await answer.json()) as { readonly reason?: string };
    return answer.ok ? String(answer.status) : `${answer.status} ${body.reason}`;
  } finally {
    stop();
  }
}

async function edit(file: string, change: (document: ReturnType<typeof parseDocument>) => void): Promise<void> {
  const document = parseDocument(await readFile(file, 'utf8'));
  change(document);
  await writeFile(file, document.toString());
}

function changeConfig({ folder }: Shell, overlay: Overlay, change: Parameters<typeof edit>[1]): Promise<void> {
  return edit(join(folder, 'k8s/overlays', overlay, 'config.yaml'), change);
}

/** A private authority without `caFile`, whose file only the pod has: `check-config` stays as the page has it. */
async function setIssuer(shell: Shell, overlay: Overlay, authentication: Authentication): Promise<void> {
  const { issuer, jwksUrl, authority } = authentication;
  await changeConfig(shell, overlay, config =>
    config.setIn(['issuers', 0], { issuer, audiences: [audience], jwksUrl }),
  );
  const folder = join(shell.folder, 'k8s/overlays', overlay);
  await writeFile(join(folder, 'ca.pem'), authority);
  const isService = overlay === 'service' || overlay === 'envoy-gateway';
  const containers = isService ? 'containers' : 'initContainers';
  const variable = { name: 'NODE_EXTRA_CA_CERTS', value: '/etc/account-authz/ca.pem' };
  await edit(join(folder, 'kustomization.yaml'), kustomization => {
    kustomization.addIn(['configMapGenerator', 0, 'files'], 'ca.pem');
    if (overlay === 'envoy-sidecar-socket') return; // it is made of envoy-sidecar
    const add = `- { op: add, path: /spec/template/spec/${containers}/0/env, value: [${JSON.stringify(variable)}] }`;
    const labelSelector = isService ? 'app.kubernetes.io/name=account-authz' : 'account-authz/sidecar=true';
    kustomization.addIn(
      ['patches'],
      kustomization.createNode({ target: { group: 'apps', labelSelector }, patch: add }),
    );
  });
}
