// What the keys report: log lines, metrics, and the events that the start and readiness wait for.
import { createDeferred } from '../deferred.ts';
import type { KeyRingObserver } from '../keys/key-ring-observer.ts';
import type { Logger } from '../operations/log.ts';
import type { Metrics } from '../operations/metrics.ts';

interface KeyEvents {
  readonly observer: KeyRingObserver;
  /** Settled when each issuer of the start has had its first refresh or usable set. */
  readonly firstKeys: Promise<void>;
}

export function createKeyEvents(options: {
  /** The issuers of the start. */
  readonly issuers: readonly { readonly issuer: string }[];
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, 'countKeyRefresh'>;
  readonly onUsable: () => void;
}): KeyEvents {
  const { logger, metrics, onUsable } = options;
  const awaited = new Set(options.issuers.map(({ issuer }) => issuer));
  const firstKeys = createDeferred<void>();
  function settle(issuers: readonly string[]): void {
    for (const issuer of issuers) awaited.delete(issuer);
    if (awaited.size === 0) firstKeys.resolve();
  }

  const observer: KeyRingObserver = {
    onRefresh({ issuers, result, problem, keys, skipped }) {
      settle(issuers);
      for (const issuer of issuers) metrics.countKeyRefresh(issuer, result);
      if (result === 'failure') logger.warn({ ...issuerFields(issuers), problem }, 'key refresh failed');
      else logger.debug({ ...issuerFields(issuers), keys, skipped }, 'key refresh');
    },
    onUsable(issuers) {
      settle(issuers);
      logger.info(issuerFields(issuers), 'keys usable');
      onUsable();
    },
    onWarning: ({ issuers, problem }) => logger.warn({ ...issuerFields(issuers), problem }, 'keys'),
  };
  return { observer, firstKeys: firstKeys.promise };
}

// One line for all issuers that share a source: with a thousand of them, each failed refresh would write a thousand lines.
function issuerFields(issuers: readonly string[]) {
  return { issuer: issuers[0], ...(issuers.length > 1 ? { issuers: issuers.length } : {}) };
}
