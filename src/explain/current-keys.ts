// Fetches the keys of every issuer once, as the service would at its start.
import type { Config } from '../config/schema.ts';
import { createDeferred } from '../deferred.ts';
import { foreignText } from '../foreign-text.ts';
import { createKeyRing, type KeyRing, type ProxySettings } from '../keys/key-ring.ts';
import { createKeyTransport } from '../keys/key-transport.ts';

const maxWarningLength = 2048;

export interface FetchSettings {
  readonly config: Config;
  readonly proxy: ProxySettings;
  readonly onWarning: (warning: string) => void;
}

/**
 * Resolves after the first refresh of each ring, successful or not, within keys.timeoutSeconds. Rejects if a jwksFile is missing or
 * invalid, see isKeyFileError.
 */
export async function fetchKeys({ config, proxy, onWarning }: FetchSettings): Promise<readonly KeyRing[]> {
  const started = config.issuers.map(issuer => {
    const firstRefresh = createDeferred<void>();
    const observer = {
      onRefresh: () => firstRefresh.resolve(),
      onUsable: () => undefined,
      onWarning: ({ issuer: of, problem }: { issuer: string; problem: string }) =>
        onWarning(foreignText(`${of}: ${problem}`, maxWarningLength)),
    };
    // In this thread: there are no other checks to delay.
    const createTransport = createKeyTransport;
    const options = { issuer, keys: config.keys, observer, proxy, createTransport, seedReadOnly: true };
    return { ring: createKeyRing(options), firstRefresh: firstRefresh.promise };
  });
  const rings = started.map(({ ring }) => ring);
  try {
    await Promise.all(rings.map(ring => ring.start()));
    await Promise.all(started.map(({ firstRefresh }) => firstRefresh));
    return rings;
  } catch (error) {
    await Promise.all(rings.map(ring => ring.stop()));
    throw error;
  }
}
