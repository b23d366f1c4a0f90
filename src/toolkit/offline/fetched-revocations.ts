// The revocation list that a command decides by: that of the file as it was loaded, or one by URL, fetched once as the service would at its
// start.
import { createFileWatch } from '../../files/file-watch.ts';
import { createFetchedList, type FetchedListStatus, type ListUnavailable } from '../../revocation/fetched-list.ts';
import type { RevocationList } from '../../revocation/revocation-list.ts';
import { printable } from '../../text/printable.ts';
import type { FetchSettings } from './fetched-keys.ts';

export interface DecidingRevocations {
  readonly list: RevocationList | ListUnavailable | undefined;
  /** Of a list by URL. */
  readonly status: FetchedListStatus | undefined;
}

const maxWarningLength = 2048;

/** Resolves after one fetch, successful or not, within keys.timeoutSeconds. Never rejects. */
export async function fetchRevocations(
  { config: { revocation, keys }, proxy, onWarning }: FetchSettings,
  ofFile: RevocationList | undefined,
): Promise<DecidingRevocations> {
  if (revocation?.url === undefined) return { list: ofFile, status: undefined };
  const { timeoutSeconds, cacheDirectory } = keys;
  const fetched = createFetchedList({
    settings: { ...revocation, timeoutSeconds, cacheDirectory },
    proxy,
    seedReadOnly: true,
    observer: {
      onFetched: () => undefined,
      onUsable: () => undefined,
      onWarning: problem => onWarning(printable(`revocation.url: ${problem}`, maxWarningLength)),
    },
    limitFetches: fetch => fetch(),
    watchFiles: createFileWatch(),
    monotonicNow: () => performance.now(),
  });
  await fetched.start();
  await fetched.fetchEnded();
  await fetched.stop();
  return { list: fetched.current(), status: fetched.status() };
}
