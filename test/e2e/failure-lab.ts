// What the tests of failing authorizers share: an upstream, one good request, and the answer that is expected in the place of an allow.
import { expect } from 'chai';
import type { RunningEnvoy } from '../../lab/envoy.ts';
import { exchange, type HttpAnswer, requestBytes } from '../../lab/raw-http.ts';
import { startRecordingUpstream } from '../../lab/recording-upstream.ts';
import { useRunning } from '../support/use-running.ts';
import { bearer, installEnvoys } from './lab.ts';

const path = '/api/subscriptions/accounts/acct1';

/** Starts the upstream before the tests of this suite, with every Envoy installed, and stops it after them. Before each test it forgets. */
export function useUpstream() {
  let authorization: string;
  const upstream = useRunning(async () => {
    await installEnvoys();
    authorization = `Authorization: ${await bearer()}`;
    return startRecordingUpstream();
  });
  beforeEach(() => upstream.clear());
  return {
    upstream,
    /** Sends a request that an authorizer would allow, with a forged identity. */
    ask: (envoy: RunningEnvoy) => exchange(envoy.port, requestBytes('GET', path, [authorization, 'x-auth-acc: evil'])),
    /** Asserts that each answer is 503, and that nothing reached the upstream. */
    expectUnavailable(answers: readonly HttpAnswer[]) {
      expect(answers.map(({ status }) => status)).to.deep.equal(answers.map(() => 503));
      expect(upstream.requests).to.deep.equal([]);
    },
  };
}
