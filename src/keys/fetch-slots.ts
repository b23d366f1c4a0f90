// Limits the fetches in flight over all issuers. Hosts take turns, and neither one slow host nor failing sources can hold every slot.
import { createDeferred } from './deferred.ts';

export interface FetchSlots {
  /** Runs `work` in a slot, once there is one. Undefined if the signal aborts before. */
  run<Result>(fetch: WaitingFetch, work: () => Promise<Result>): Promise<Result | undefined>;
}

interface WaitingFetch {
  readonly host: string;
  /** The last fetch from this source failed. */
  readonly isRetry: boolean;
  readonly signal: AbortSignal;
}

const maxFetches = 8;
// The limit of one host, and of all retries: a host that hangs leaves the other half.
const maxShare = 4;

type Grant = (isGranted: boolean) => void;

/** In the order of the hosts' turns. */
type Queue = Map<string, Set<Grant>>;

export function createFetchSlots(): FetchSlots {
  const first: Queue = new Map();
  const retries: Queue = new Map();
  const inFlight = { all: 0, retries: 0, ofHost: new Map<string, number>() };

  function count({ host, isRetry }: WaitingFetch, change: 1 | -1): void {
    inFlight.all += change;
    if (isRetry) inFlight.retries += change;
    const ofHost = (inFlight.ofHost.get(host) ?? 0) + change;
    if (ofHost === 0) inFlight.ofHost.delete(host);
    else inFlight.ofHost.set(host, ofHost);
  }

  function grantNext(): void {
    while (inFlight.all < maxFetches) {
      const grant = takeNext(first) ?? (inFlight.retries < maxShare ? takeNext(retries) : undefined);
      if (grant === undefined) return;
      grant(true);
    }
  }

  function takeNext(queue: Queue): Grant | undefined {
    for (const [host, grants] of queue) {
      const [grant] = grants;
      if (grant === undefined || (inFlight.ofHost.get(host) ?? 0) >= maxShare) continue;
      remove(queue, host, grant);
      return grant;
    }
    return undefined;
  }

  // Moves the host to the end of the queue.
  function remove(queue: Queue, host: string, grant: Grant): void {
    const grants = queue.get(host);
    grants?.delete(grant);
    queue.delete(host);
    if (grants !== undefined && grants.size > 0) queue.set(host, grants);
  }

  async function waitForSlot(fetch: WaitingFetch): Promise<boolean> {
    const { host, isRetry, signal } = fetch;
    const queue = isRetry ? retries : first;
    const granted = createDeferred<boolean>();
    const grant: Grant = isGranted => {
      if (isGranted) count(fetch, 1);
      granted.resolve(isGranted);
    };
    const abort = (): void => {
      remove(queue, host, grant);
      grant(false);
    };
    queue.set(host, (queue.get(host) ?? new Set()).add(grant));
    signal.addEventListener('abort', abort);
    grantNext();
    const isGranted = await granted.promise;
    signal.removeEventListener('abort', abort);
    return isGranted;
  }

  return {
    async run(fetch, work) {
      if (fetch.signal.aborted || !(await waitForSlot(fetch))) return undefined;
      try {
        return await work();
      } finally {
        count(fetch, -1);
        grantNext();
      }
    },
  };
}
