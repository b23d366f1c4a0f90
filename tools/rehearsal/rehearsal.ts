// Rolls a pod under load as a Deployment would, and counts failures: the new pod starts while the old one serves; once it is ready, the
// Service adds it, the old pod is terminated, and the Service removes the old pod only some time later.
import { setTimeout as delay } from 'node:timers/promises';
import { SignJWT } from 'jose';
import { parseDocument } from 'yaml';
import { signingKey } from '../../lab/signing-key.ts';
import { startTestIssuer } from '../../lab/test-issuer.ts';
import { type Pod, startPod } from './kubelet.ts';
import { type Answered, type ClientKind, createService, type Order, startLoad } from './load.ts';
import { createPlacement, type EditFile } from './placement.ts';
import type { PodPlan } from './pod-plan.ts';

export interface RehearsalOptions {
  readonly plan: PodPlan;
  readonly rolls: number;
  /** Scales the durations of the preStop hooks; 1 is as in the manifests. */
  readonly pace: number;
  /** How long the Service still routes to a terminating pod. */
  readonly propagationSeconds: number;
  readonly clients: Readonly<Record<ClientKind, number>>;
  readonly pauseMs: number;
  /** Receives progress messages. */
  readonly onEvent?: (text: string) => void;
}

export interface Rehearsal {
  readonly answers: readonly Answered[];
  /** In order of creation; the last one is stopped after the load. */
  readonly pods: readonly Pod[];
  /** Start and end of each roll, by performance.now(). */
  readonly rolls: readonly { readonly fromMs: number; readonly toMs: number }[];
  /** Problems other than answers: a failed probe, an unexpected exit, a kill. */
  readonly problems: readonly string[];
}

/** The duration of the load before the first roll, between the rolls and after the last one. */
const steadyMs = 1000;

export async function rehearse(options: RehearsalOptions): Promise<Rehearsal> {
  const { plan, rolls, pace, propagationSeconds, clients, pauseMs, onEvent = () => undefined } = options;
  const key = await signingKey('rehearsal');
  const issuer = await startTestIssuer({ keys: [key.publicJwk] });
  const service = createService();
  const pods: Pod[] = [];
  const spans: { fromMs: number; toMs: number }[] = [];
  const cleanUps: (() => Promise<unknown>)[] = [() => issuer.stop()];
  const network = `127.${randomByte()}.${randomByte()}`;

  const make = async (): Promise<Pod> => {
    const name = `pod ${pods.length + 1}`;
    const placement = await createPlacement(plan, `${network}.${pods.length + 1}`, toIssuer(issuer));
    cleanUps.push(() => placement.remove());
    const pod = await startPod({ name, plan, placement, pace });
    pods.push(pod);
    await pod.untilReady();
    service.add(pod);
    onEvent(`${name} is ready`);
    return pod;
  };

  try {
    let serving = await make();
    const orders = await ordersOf(plan, issuer.url, key);
    const load = startLoad({ service, orders, clients, pauseMs });
    await delay(steadyMs);
    for (let roll = 1; roll <= rolls; roll += 1) {
      const fromMs = performance.now();
      const next = await make();
      const before = serving;
      onEvent(`${before.name} gets SIGTERM`);
      const removed = delay(propagationSeconds * 1000).then(() => service.remove(before));
      await Promise.all([before.stop(), removed]);
      onEvent(`${before.name} has ended`);
      serving = next;
      await delay(steadyMs);
      spans.push({ fromMs, toMs: performance.now() });
    }
    await load.stop();
    service.remove(serving);
    serving.kill();
    const killed = pods.flatMap(({ name, containers }) =>
      containers.filter(container => container.killed).map(container => `${name}: ${container.name} had to be killed`),
    );
    const problems = [...pods.flatMap(pod => pod.problems), ...killed];
    return { answers: load.answers, pods, rolls: spans, problems };
  } finally {
    for (const pod of pods) pod.kill();
    for (const cleanUp of cleanUps) await cleanUp();
  }
}

/** The authentication service, which an overlay leaves to its user. */
function toIssuer(issuer: { readonly url: string; readonly jwksUrl: string }): EditFile {
  return (name, text) => {
    if (name !== 'config.yaml') return text;
    const config = parseDocument(text);
    config.setIn(['issuers', 0, 'issuer'], issuer.url);
    config.deleteIn(['issuers', 0, 'discoveryUrl']);
    config.setIn(['issuers', 0, 'jwksUrl'], issuer.jwksUrl);
    return config.toString();
  };
}

/** An allow and two refusals in turn, which only a working authorizer gives. */
async function ordersOf(
  plan: PodPlan,
  iss: string,
  key: Awaited<ReturnType<typeof signingKey>>,
): Promise<readonly Order[]> {
  const text = plan.volumes.flatMap(({ files }) => files['config.yaml'] ?? [])[0] ?? '';
  const audience = parseDocument(text).getIn(['issuers', 0, 'audiences', 0]);
  const token = await new SignJWT({ uid: 'user-alice', app: 'web-app', acc: 'acme', role: 'owner', iss })
    .setProtectedHeader({ alg: key.alg, kid: key.kid, typ: 'at+jwt' })
    .setAudience(String(audience))
    .setIssuedAt()
    .setExpirationTime('1h')
    .sign(key.privateKey);
  return [
    { path: '/api/subscriptions/accounts/acme', token, status: 200 },
    { path: '/api/subscriptions', token, status: 200 },
    { path: '/api/subscriptions/accounts/globex', token, status: 403 },
    { path: '/api/subscriptions', status: 401 },
  ];
}

function randomByte(): number {
  return 16 + Math.floor(Math.random() * 200);
}
