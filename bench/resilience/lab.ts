// Everything that the resilience scenario runs on: the watched issuer, the built product, a real Envoy with the shipped
// envoy.yaml, a recording upstream, and two load processes: the steady one that is measured, and the flood.
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { envoyBinary, freePorts, startEnvoy } from '../../test/support/envoy.ts';
import { startServiceProcess } from '../../test/support/service-process.ts';
import { signingKey } from '../../test/support/signing-key.ts';
import { audience, base64url, claims, issuer as issuerName, token } from '../../test/support/token.ts';
import { type Answer, type LaneDescription, startLoadProcess } from '../load/http-load-process.ts';
import { type MemorySample, watchResidentMemory } from '../measure/resident-memory.ts';
import { type Form, type Kid, kids } from './form.ts';
import { startNotingUpstream } from './noting-upstream.ts';
import { startWatchedIssuer, type WatchedIssuer } from './watched-issuer.ts';

export interface Mix {
  /** Good tokens are signed with these, in equal shares. */
  readonly good: readonly Kid[];
  /** Tokens of a key that is gone, at a low rate beside the good ones. */
  readonly retired?: Kid;
  /** Tokens with kids that never were, at a low rate beside the good ones. */
  readonly strangers?: boolean;
}

/** What a request was about; read off its lane and number. */
export interface Subject {
  /** Of the token; of a stranger's, one that no issuer ever publishes. */
  readonly kid: string;
  readonly account: string;
  readonly isFlood: boolean;
}

export interface Lab {
  readonly issuer: WatchedIssuer;
  readonly versions: { readonly node: string; readonly envoy: string };
  readonly nodeOptions: string | undefined;
  /** Of both loads, as they came in. */
  readonly answers: readonly Answer[];
  readonly memory: readonly MemorySample[];
  mix(mix: Mix): void;
  flood(isOn: boolean): void;
  /** As many requests as a flood, of which Envoy asks nobody: what sends them and what answers them has its code and its connections then. */
  rehearseFlood(isOn: boolean): void;
  subjectOf(answer: Answer): Subject;
  /** The x-auth-acc with which a request has reached the upstream; undefined where it has not. */
  accountAtUpstream(answer: Answer): string | undefined;
  /** Refreshes of the key set until now, by the product's own count. */
  refreshes(): Promise<Refreshes>;
  /** Ends the loads; the number of requests that were sent. */
  endLoad(): Promise<number>;
  stop(): Promise<void>;
  /** Rejects when a load process has failed. */
  readonly failed: Promise<never>;
}

export interface Refreshes {
  readonly succeeded: number;
  readonly failed: number;
}

const strangersPerSecond = 5;
const retiredPerSecond = 10;
const freshShare = 0.2;
const knownTokens = 12;
const strangersAccount = 'acct-stranger';
const nobodysKid = 'nobody';

/** `nodeOptions`: NODE_OPTIONS of the product alone. */
export async function startLab(form: Form, nodeOptions: string | undefined): Promise<Lab> {
  const [issuer, upstream, [listen, admin]] = await Promise.all([
    startWatchedIssuer([kids[0]]),
    startNotingUpstream(),
    freePorts(2),
  ]);
  const ours = process.env.NODE_OPTIONS;
  if (nodeOptions !== undefined) process.env.NODE_OPTIONS = nodeOptions;
  const service = await startServiceProcess(
    {
      listen: `127.0.0.1:${listen}`,
      admin: `127.0.0.1:${admin}`,
      issuers: [{ issuer: issuerName, audiences: [audience], jwksUrl: issuer.jwksUrl }],
      keys: form.keys,
      routes: [{ path: '/api/subscriptions/accounts/:account_id/*' }],
      roles: { owner: ['*'] },
      shutdown: { graceSeconds: 2 },
    },
    { keepsLog: false },
  );
  if (ours === undefined) delete process.env.NODE_OPTIONS;
  else process.env.NODE_OPTIONS = ours;
  const envoy = await startEnvoy({ authz: service.address, upstream: upstream.port, keepsAccessLog: false });
  const origin = `http://127.0.0.1:${envoy.port}`;

  const answers: Answer[] = [];
  let fail: (error: Error) => void;
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  failed.catch(() => undefined);
  const hooks = {
    onAnswers: (batch: readonly Answer[]): void => void answers.push(...batch),
    onFault: (error: Error): void => fail(error),
  };
  const tokenLanes = (await Promise.all(kids.map(kid => lanesOf(kid, form)))).flat();
  const strangers = strangersLane('strangers');
  // Envoy answers it with 404 and asks nobody: account-authz has the flood still before it.
  const rehearsal = { ...strangersLane('rehearsal', '/nothing'), isRehearsal: true };
  const [steady, flood] = await Promise.all([
    startLoadProcess({ origin, connections: 64, lanes: [...tokenLanes, strangers] }, hooks),
    startLoadProcess(
      { origin, connections: 64, lanes: [strangersLane('flood'), rehearsal], keepsAnswers: true },
      hooks,
    ),
  ]);
  const memory = watchResidentMemory(service.pid);

  const lanes = new Map(tokenLanes.map(lane => [lane.name, lane]));
  const refreshes = async (): Promise<Refreshes> => {
    const page = await (await fetch(`http://127.0.0.1:${service.adminPort}/metrics`)).text();
    const count = (result: string): number =>
      Number(
        new RegExp(`^account_authz_key_refreshes_total\\{.*result="${result}".*\\} (\\d+)`, 'm').exec(page)?.[1] ?? 0,
      );
    return { succeeded: count('success'), failed: count('failure') };
  };

  return {
    issuer,
    nodeOptions,
    versions: { node: process.versions.node, envoy: await envoyVersion() },
    answers,
    memory: memory.samples,
    failed,
    mix({ good, retired, strangers: hasStrangers = false }) {
      const perKey = form.goodPerSecond / good.length;
      steady.setRates({
        ...Object.fromEntries(
          good.flatMap(kid => [
            [`known-${kid}`, perKey * (1 - freshShare)],
            [`fresh-${kid}`, perKey * freshShare],
          ]),
        ),
        ...(retired === undefined ? {} : { [`known-${retired}`]: retiredPerSecond }),
        ...(hasStrangers ? { [strangers.name]: strangersPerSecond } : {}),
      });
    },
    rehearseFlood: isOn => flood.setRates(isOn ? { [rehearsal.name]: form.floodPerSecond } : {}),
    flood: isOn => flood.setRates(isOn ? { flood: form.floodPerSecond } : {}),
    subjectOf({ lane, number }) {
      const known = lanes.get(lane);
      if (known === undefined) return { kid: nobodysKid, account: strangersAccount, isFlood: lane === 'flood' };
      return { kid: known.kid, account: accountOf(number), isFlood: false };
    },
    accountAtUpstream: ({ lane, number }) => upstream.accounts.get(`${lane}.${number}`),
    refreshes,
    async endLoad() {
      const counts = await Promise.all([steady.stop(), flood.stop()]);
      await upstream.told();
      return counts.reduce((sum, count) => sum + count, 0);
    },
    async stop() {
      memory.stop();
      steady.kill();
      flood.kill();
      await Promise.all([envoy.stop(), service.kill(), upstream.stop(), issuer.stop()]);
    },
  };
}

type TokenLane = LaneDescription & { readonly kid: Kid };

async function lanesOf(kid: Kid, form: Form): Promise<TokenLane[]> {
  const fresh = Math.ceil(form.freshSeconds[kid] * form.goodPerSecond * freshShare);
  return [
    { kind: 'tokens', kid, name: `known-${kid}`, once: false, requests: await mint(kid, knownTokens, 'known') },
    { kind: 'tokens', kid, name: `fresh-${kid}`, once: true, requests: await mint(kid, fresh, 'fresh') },
  ];
}

async function mint(kid: Kid, count: number, uid: string): Promise<{ path: string; token: string }[]> {
  const key = await signingKey(kid);
  const seconds = Math.floor(Date.now() / 1000);
  const requests: { path: string; token: string }[] = [];
  for (let number = 0; number < count; number++) {
    const acc = accountOf(number);
    const own = { iat: seconds - 10, exp: seconds + 3600, uid: `${uid}-${number}`, acc };
    requests.push({ path: pathOf(acc), token: await token({ key, claims: own }) });
  }
  return requests;
}

// The known tokens come in turn, so that a number tells the account of either kind of lane.
function accountOf(number: number): string {
  return `acct-${number % knownTokens}`;
}

function pathOf(account: string): string {
  return `/api/subscriptions/accounts/${account}`;
}

function strangersLane(name: string, path = pathOf(strangersAccount)): LaneDescription {
  const seconds = Math.floor(Date.now() / 1000);
  const payload = claims({ iat: seconds - 10, exp: seconds + 3600, acc: strangersAccount });
  return { kind: 'strangers', name, path, payload: base64url(JSON.stringify(payload)) };
}

async function envoyVersion(): Promise<string> {
  const { stdout } = await promisify(execFile)(await envoyBinary(), ['--version']);
  return /\/(\d+\.\d+\.\d+)/.exec(stdout)?.[1] ?? 'unknown';
}
