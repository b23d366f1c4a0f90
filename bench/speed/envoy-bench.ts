// Scenario `envoy`: client requests through a real Envoy that shares the servers' core with the authorizer.
import { type RunningEnvoy, startEnvoy } from '../../lab/envoy.ts';
import { freePorts } from '../../lab/free-ports.ts';
import { isExpected, type RequestSet } from '../load/wire-load.ts';
import { pin } from '../measure/pinning.ts';
import type { RunningContender } from './contender.ts';
import { addUpstream, type EnvoyVariant } from './envoy-variants.ts';
import type { BenchForm } from './form.ts';
import type { BenchLab } from './lab.ts';
import { firstLane, rightAnswers } from './loops.ts';
import { knownToken } from './request-sets.ts';
import { clientBlocks, clientRequest } from './requests.ts';
import type { EnvoyRound } from './results.ts';
import { ask } from './server-process.ts';

export const clientSet = 'client';

export interface RunningVariant {
  readonly port: number;
  readonly pids: readonly number[];
  stop(): Promise<void>;
}

export async function clientRequests(lab: BenchLab): Promise<RequestSet> {
  return { requests: [clientRequest(await knownToken(lab.tokens))], once: false, expected: 'status 200' };
}

export async function startVariant(
  lab: BenchLab,
  variant: EnvoyVariant,
  service: RunningContender | undefined,
): Promise<RunningVariant> {
  const [upstream = 0] = await freePorts(1);
  const envoy = await startEnvoy({
    upstream,
    ...(service === undefined ? {} : { authz: [`127.0.0.1:${service.target.port}`] }),
    edit(bootstrap) {
      addUpstream(bootstrap, upstream);
      variant.edit(bootstrap);
    },
  });
  await pin(envoy.pid, lab.cores?.server);
  try {
    await checkVariant(lab, variant, envoy);
  } catch (error) {
    await envoy.stop();
    throw error;
  }
  return {
    port: envoy.port,
    pids: [envoy.pid, ...(service === undefined ? [] : [service.pid])],
    stop: () => envoy.stop(),
  };
}

async function checkVariant(lab: BenchLab, { name, decides }: EnvoyVariant, { port }: RunningEnvoy): Promise<void> {
  const known = await knownToken(lab.tokens);
  const [forged = known] = lab.tokens.forged(1);
  const cases = [
    { what: 'a good token', request: clientRequest(known), isServed: true },
    { what: 'another account', request: clientRequest(known, 'acct-other1'), isServed: false },
    { what: 'a forged signature', request: clientRequest(forged), isServed: false },
    { what: 'an expired token', request: clientRequest(await lab.tokens.expired()), isServed: false },
  ];
  for (const { what, request, isServed } of decides ? cases : cases.slice(0, 1)) {
    const answer = await ask({ target: { port }, shared: clientBlocks, request });
    if (isExpected(isServed ? 'status 200' : 'another status', answer)) continue;
    throw new Error(`${name}: ${what} is ${isServed ? 'not ' : ''}served`);
  }
}

export async function measureVariant(lab: BenchLab, running: RunningVariant, form: BenchForm): Promise<EnvoyRound> {
  const { connections, inFlight, turnWarmMs, envoyMs, envoyPerSecond } = form;
  const { port, pids } = running;
  const run = { target: { port }, shared: clientBlocks, connections, measureMs: envoyMs, pids };
  const warm = { ...run, warmMs: turnWarmMs };
  const closed = await lab.load.run({ kind: 'closed', set: clientSet, inFlight, run: warm });
  const lanes = [{ set: clientSet, perSecond: envoyPerSecond }];
  const open = await lab.load.run({ kind: 'open', lanes, run: { ...run, warmMs: 200 } });
  const answered = rightAnswers('envoy', closed);
  rightAnswers('envoy', open);
  return {
    perSecond: (answered / closed.elapsedMs) * 1000,
    cpuMicrosecondsPerRequest: closed.cpuMicroseconds.reduce((sum, each) => sum + each, 0) / answered,
    ...firstLane(open),
  };
}
