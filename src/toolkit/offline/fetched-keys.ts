// Fetches the keys of every issuer once, as the service would at its start.
import type { Config } from '../../config/schema.ts';
import type { ProxySettings } from '../../http/proxy.ts';
import type { IssuerRing } from '../../keys/key-ring.ts';
import { createKeyRings } from '../../keys/key-rings.ts';
import { printable } from '../../text/printable.ts';

const maxWarningLength = 2048;

export interface FetchSettings {
  readonly config: Config;
  readonly proxy: ProxySettings;
  readonly onWarning: (warning: string) => void;
}

export interface FetchedKeys {
  /** By issuer, in the order of the configuration. */
  readonly rings: ReadonlyMap<string, IssuerRing>;
  stop(): Promise<void>;
}

/**
 * Resolves after the first refresh for each issuer, successful or not, within keys.timeoutSeconds. Rejects with a
 * KeyFileError if a jwksFile is missing or broken.
 */
export async function fetchKeys({ config, proxy, onWarning }: FetchSettings): Promise<FetchedKeys> {
  const keyRings = createKeyRings({
    observer: {
      onRefresh: () => undefined,
      onUsable: () => undefined,
      onWarning: ({ issuers, problem }) => onWarning(printable(`${issuers[0]}: ${problem}`, maxWarningLength)),
    },
    proxy,
    seedReadOnly: true,
    // All at once, so that keys.timeoutSeconds bounds the time for all of them together.
    maxFetches: Number.POSITIVE_INFINITY,
  });
  try {
    const { rings, fetched } = await keyRings.prepare(config.issuers, config.keys);
    await fetched();
    return { rings, stop: keyRings.stop };
  } catch (error) {
    await keyRings.stop();
    throw error;
  }
}
