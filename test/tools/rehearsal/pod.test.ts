// The pod of the envoy-sidecar overlay on this machine: started, probed and stopped as by a kubelet, and rolled under load.
import { expect } from 'chai';
import { renderText } from '../../../lab/kustomize.ts';
import { type PodPlan, parsePodPlan } from '../../../tools/rehearsal/pod-plan.ts';
import { type Rehearsal, type RehearsalOptions, rehearse } from '../../../tools/rehearsal/rehearsal.ts';
import { isLossless, reportOf } from '../../../tools/rehearsal/report.ts';

/** Waits scaled to a fifth, and a load that a busy machine can carry. */
const short = {
  pace: 0.2,
  propagationSeconds: 1,
  clients: { 'HTTP/1.1': 2, 'HTTP/2': 2, 'one request a connection': 1 },
  pauseMs: 50,
} satisfies Partial<RehearsalOptions>;

/** The limits of a check ten times as long: a pod that starts beside others on a busy machine stalls them for half a second. */
function withPatience(yaml: string): string {
  const limits: readonly (readonly [string, string])[] = [
    ['timeout: 0.5s # for all attempts', 'timeout: 5s # for all attempts'],
    ['max_interval: 0.25s', 'max_interval: 2.5s'],
    ['connect_timeout: 0.1s', 'connect_timeout: 1s'],
  ];
  return limits.reduce((text, [shipped, patient]) => {
    expect(text).to.contain(shipped);
    return text.replaceAll(shipped, patient);
  }, yaml);
}

describe('the pod of the envoy-sidecar overlay', function () {
  this.timeout(180_000);

  let yaml: string;
  let plan: PodPlan;
  before(async () => {
    yaml = withPatience(await renderText('k8s/overlays/envoy-sidecar'));
    plan = parsePodPlan(yaml);
  });

  it('is read from the rendered manifests', () => {
    expect(plan.containers.map(({ name, kind }) => `${kind} ${name}`)).to.deep.equal([
      'sidecar account-authz',
      'sidecar envoy',
      'app app',
    ]);
    expect(plan.containers.every(({ startup, readiness, liveness }) => startup && readiness && liveness)).to.equal(
      true,
    );
    expect(plan.servicePort).to.equal(8080);
  });

  it('is not rehearsed if it uses a feature that the rehearsal does not implement', () => {
    expect(() => parsePodPlan(yaml.replace('restartPolicy: Always', 'restartPolicy: Never'))).to.throw(/no sidecar/);
    expect(() => parsePodPlan(yaml.replace(/preStop:\n\s+sleep:/, 'preStop:\n            tcpSocket:'))).to.throw(
      /preStop/,
    );
  });

  describe('rolled under load', () => {
    let rehearsal: Rehearsal;
    before(async () => {
      rehearsal = await rehearse({ ...short, plan, rolls: 1 });
    });

    const record = (pod: number, name: string) =>
      rehearsal.pods[pod]?.containers.find(container => container.name === name) ?? expect.fail(`no ${name}`);

    it('loses no request', () => {
      expect(isLossless(rehearsal), reportOf(rehearsal, false)).to.equal(true);
      expect(rehearsal.answers.length).to.be.greaterThan(200);
    });

    it('gets answers from both pods', () => {
      expect(new Set(rehearsal.answers.map(({ pod }) => pod))).to.deep.equal(new Set(['pod 1', 'pod 2']));
    });

    it('starts each container after the previous one has started', () => {
      for (const pod of [0, 1]) {
        const started = ['account-authz', 'envoy', 'app'].map(name => record(pod, name).startedMs);
        expect(started).to.deep.equal(started.toSorted((a, b) => a - b));
      }
    });

    it('stops the app first and account-authz last, each with exit code 0', () => {
      const [app, envoy, authz] = ['app', 'envoy', 'account-authz'].map(name => record(0, name));
      expect(app?.exitedMs).to.be.at.most(envoy?.terminatedMs ?? 0);
      expect(envoy?.exitedMs).to.be.at.most(authz?.terminatedMs ?? 0);
      expect([app, envoy, authz].map(each => each?.exitCode)).to.deep.equal([0, 0, 0]);
    });
  });

  it('detects the requests that are lost if the app does not wait for the drain', async () => {
    const withoutWait: PodPlan = {
      ...plan,
      containers: plan.containers.map(container =>
        container.name === 'app' ? { ...container, preStop: { kind: 'none' } } : container,
      ),
    };
    const rehearsal = await rehearse({ ...short, plan: withoutWait, rolls: 1 });
    expect(isLossless(rehearsal)).to.equal(false);
    expect(new Set(rehearsal.answers.flatMap(({ failure = [] }) => failure))).to.include('503 in the place of 200');
  });
});
