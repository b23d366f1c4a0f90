// What the keys report: log lines and metrics, and that they are usable.
import type { KeyRingObserver } from '../keys/key-ring.ts';
import type { Logger } from './log.ts';
import type { Metrics } from './metrics.ts';

export function createKeyEvents(deps: {
  readonly logger: Logger;
  readonly metrics: Pick<Metrics, 'countKeyRefresh'>;
  readonly onUsable: () => void;
}): KeyRingObserver {
  const { logger, metrics, onUsable } = deps;
  return {
    onRefresh({ issuers, result, problem, keys, skipped }) {
      for (const issuer of issuers) metrics.countKeyRefresh(issuer, result);
      const fields = { ...issuerFields(issuers), ...(skipped && { skipped }) };
      if (result === 'failure') logger.warn({ ...fields, problem }, 'key refresh failed');
      else logger.debug({ ...fields, keys }, 'key refresh');
    },
    onUsable(issuers) {
      logger.info(issuerFields(issuers), 'keys usable');
      onUsable();
    },
    onWarning: ({ issuers, problem }) => logger.warn({ ...issuerFields(issuers), problem }, 'keys'),
  };
}

// One line for all issuers that share a source: with a thousand of them, each failed refresh would write a thousand lines.
function issuerFields(issuers: readonly string[]) {
  return { issuer: issuers[0], ...(issuers.length > 1 && { issuers: issuers.length }) };
}
