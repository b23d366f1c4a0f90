// What the tests of failing authorizers share: an upstream, one good request, and the answer that is expected in the place of an allow.
import { expect } from 'chai';
import type { RunningEnvoy } from '../../lab/envoy.ts';
import { exchange, type HttpAnswer, requestBytes } from '../../lab/raw-http.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../../lab/recording-upstream.ts';
import { useRunning } from '../support/use-running.ts';
import { bearer, installEnvoys } from './lab.ts';

const path = '/api/subscriptions/accounts/acct1';

export interface FailureSuite {
  readonly upstream: RecordingUpstream;
  /** Sends a request that an authorizer would allow, with a forged identity. */
  ask(envoy: RunningEnvoy): Promise<HttpAnswer>;
  /** Asserts that each answer is 503, and that nothing reached the upstream. */
  expectUnavailable(answers: readonly HttpAnswer[]): void;
}

/** Starts the upstream before the tests of this suite, with every Envoy installed, and stops it after them. Before each test it forgets. */
export function useUpstream(): FailureSuite {
  let authorization: string;
  const upstream = useRunning(async () => {
    await installEnvoys();
    authorization = `Authorization: ${await bearer()}`;
    return startRecordingUpstream();
  });
  beforeEach(() => upstream.clear());
  return {
    upstream,
    ask: envoy => exchange(envoy.port, requestBytes('GET', path, [authorization, 'x-auth-acc: evil'])),
    expectUnavailable(answers) {
      expect(answers.map(({ status }) => status)).to.deep.equal(answers.map(() => 503));
      expect(upstream.requests).to.deep.equal([]);
    },
  };
}
