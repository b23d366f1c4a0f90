// The test issuer with a memory: what it published and when, when it was away, and which fetches it answered.
import { type SigningKey, signingKey } from '../../test/support/signing-key.ts';
import { startTestIssuer } from '../../test/support/test-issuer.ts';
import { clockMs } from '../measure/clock.ts';

/** All times are of clockMs. */
export interface IssuerHistory {
  /** Fetches that were answered with a key set, in order. */
  readonly fetches: readonly AnsweredFetch[];
  readonly outages: readonly { readonly fromMs: number; readonly toMs: number }[];
  readonly publications: readonly { readonly atMs: number; readonly kids: ReadonlySet<string> }[];
}

export interface AnsweredFetch {
  /** When the request came. */
  readonly askedMs: number;
  /** When the answer was written. */
  readonly answeredMs: number;
  readonly kids: ReadonlySet<string>;
}

export interface WatchedIssuer {
  readonly jwksUrl: string;
  publish(kids: readonly string[]): Promise<void>;
  goDown(): Promise<void>;
  comeBack(): Promise<void>;
  /** Every fetch takes this long from now on; 0 ends it. */
  slowDown(delayMs: number): void;
  /** When each request for keys came, answered or not. */
  requestTimes(): readonly number[];
  /** Resolves right after the next fetch was answered. */
  nextFetch(): Promise<void>;
  history(): IssuerHistory;
  stop(): Promise<void>;
}

const lookMs = 5;

export async function startWatchedIssuer(kids: readonly string[]): Promise<WatchedIssuer> {
  const issuer = await startTestIssuer({ keys: await publicKeys(kids) });
  // The issuer writes performance.now() down, which counts from the start of this process.
  const offsetMs = clockMs() - performance.now();
  const publications = [{ atMs: clockMs(), kids: new Set(kids) }];
  const delays = [{ fromMs: 0, delayMs: 0 }];
  const outages: { fromMs: number; toMs: number }[] = [];

  const answered = (): AnsweredFetch[] =>
    issuer
      .requests('jwks')
      .filter(({ status }) => status === 200 || status === 304)
      .map(({ atMs }) => {
        const askedMs = atMs + offsetMs;
        const answeredMs = askedMs + (delays.findLast(delay => delay.fromMs <= askedMs)?.delayMs ?? 0);
        const published = publications.findLast(publication => publication.atMs <= answeredMs);
        return { askedMs, answeredMs, kids: published?.kids ?? new Set() };
      });

  return {
    jwksUrl: issuer.jwksUrl,
    async publish(published) {
      const keys = await publicKeys(published);
      publications.push({ atMs: clockMs(), kids: new Set(published) });
      issuer.publish(keys);
    },
    async goDown() {
      outages.push({ fromMs: clockMs(), toMs: Infinity });
      await issuer.stop();
    },
    async comeBack() {
      await issuer.restart();
      const outage = outages.at(-1);
      if (outage !== undefined) outage.toMs = clockMs();
    },
    slowDown(delayMs) {
      delays.push({ fromMs: clockMs(), delayMs });
      if (delayMs === 0) issuer.healthy();
      else issuer.fault({ kind: 'slow', delayMs }, 'jwks');
    },
    requestTimes: () => issuer.requests('jwks').map(({ atMs }) => atMs + offsetMs),
    async nextFetch() {
      const before = answered().length;
      while (answered().length === before) await new Promise(resolve => setTimeout(resolve, lookMs));
    },
    history: () => ({ fetches: answered(), outages, publications }),
    stop: () => issuer.stop(),
  };
}

async function publicKeys(kids: readonly string[]): Promise<SigningKey['publicJwk'][]> {
  return (await Promise.all(kids.map(kid => signingKey(kid)))).map(key => key.publicJwk);
}
