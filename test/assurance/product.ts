// The whole product under test, from the bytes of a CheckRequest to those of a CheckResponse, with real key rings and a real
// issuer. The only file of the comparison that imports src/; all others use it.
import { startTestIssuer } from '../../lab/test-issuer.ts';
import { until } from '../../lab/until.ts';
import { toAccountGrammar } from '../../src/authz/places/places.ts';
import { type Check, createCheck } from '../../src/check/check.ts';
import { createEngine, createTokenMemory } from '../../src/check/engine.ts';
import { toResponseSettings } from '../../src/check/response-settings.ts';
import { expandIssuers } from '../../src/config/issuer-templates.ts';
import { configSchema } from '../../src/config/schema.ts';
import { createAnswers } from '../../src/envoy/answers.ts';
import { readRequestFacts } from '../../src/envoy/request.ts';
import { createFileWatch } from '../../src/files/file-watch.ts';
import { createKeyRing, type IssuerRing, type KeyRing } from '../../src/keys/key-ring.ts';
import type { ListUnavailable } from '../../src/revocation/fetched-list.ts';
import { parseRevocation } from '../../src/revocation/list-reader.ts';
import { createRevocationList, type RevocationList } from '../../src/revocation/revocation-list.ts';
import { withKid } from '../support/key-rings.ts';
import type { IssuerKeys } from './oracle/issuer-keys.ts';
import type { RevocationEntry } from './oracle/revocation.ts';
import type { WrittenConfiguration } from './oracle/settings.ts';

export type Product = Awaited<ReturnType<typeof startProduct>>;

const maxAgeSeconds = 3600;
const cooldownSeconds = 5;

/** `keys`: by issuer of the configuration. */
export async function startProduct(
  { revoked, isListMissing = false, ...written }: WrittenConfiguration,
  keys: ReadonlyMap<string, IssuerKeys>,
) {
  let now = 0;
  let records: unknown[] = [];
  const faults: unknown[] = [];
  const parsed = configSchema.parse({
    listen: '127.0.0.1:0',
    admin: '127.0.0.1:0',
    ...written,
    issuers: written.issuers.map(issuer => ({ jwksUrl: 'https://idp.test/keys', ...issuer })),
    keys: { refreshSeconds: 900, maxAgeSeconds, cooldownSeconds },
  });
  const sources: KeySource[] = [];
  const rings: KeyRing[] = [];
  const keyRings = new Map<string, IssuerRing>();
  const config = { ...parsed, issuers: expandIssuers(parsed.issuers, toAccountGrammar(parsed.account)) };
  for (const issuer of config.issuers) {
    const own = keys.get(issuer.issuer);
    if (own === undefined) throw new Error('an issuer without keys');
    const source = await startKeySource(own);
    sources.push(source);
    const { ring, used } = await source.ring({ ...issuer, jwksUrl: source.issuer.jwksUrl }, config.keys);
    rings.push(ring);
    keyRings.set(issuer.issuer, used);
  }
  const missing: ListUnavailable = { kind: 'unavailable', detail: 'no revocation list yet' };
  const list = isListMissing ? missing : revoked && readRevocations(revoked);
  const engine = createEngine({
    config,
    keyRings,
    memory: createTokenMemory(config),
    revocations: () => list,
    now: () => now,
  });
  const answers = createAnswers(toResponseSettings(config));
  const check: Check = createCheck({
    current: () => ({ engine, answers }),
    record: record => records.push(record),
    onFault: fault => faults.push(fault),
    monotonicNow: () => 0,
  });
  return {
    /** The bytes of an answer; throws if the request cannot be decoded. `at`: seconds since the epoch. */
    async decide(request: Buffer, at: number) {
      now = at;
      return check(readRequestFacts(request));
    },
    /** The log lines since the last call, as JSON. */
    takeRecords() {
      const text = JSON.stringify(records);
      records = [];
      return text;
    },
    faults,
    async stop() {
      await Promise.all(rings.map(ring => ring.stop()));
      await Promise.all(sources.map(({ issuer }) => issuer.stop()));
    },
  };
}

function readRevocations(entries: readonly RevocationEntry[]): RevocationList {
  const list = createRevocationList();
  for (const each of entries) {
    const entry = parseRevocation(Buffer.from(JSON.stringify(each)));
    if (entry.kind === 'problems') throw new Error(`the list is refused: ${JSON.stringify(entry.problems)}`);
    list.add(entry);
  }
  return list;
}

type RingSettings = Parameters<typeof createKeyRing>[0];
type KeySource = Awaited<ReturnType<typeof startKeySource>>;

async function startKeySource({ state, published }: IssuerKeys) {
  const issuer = await startTestIssuer({ keys: published });
  return {
    issuer,
    /** A key ring in a given state. Its clock stands still, so that the state does not change. */
    async ring(settings: RingSettings['issuers'][number], keys: RingSettings['keys']) {
      let clockMs = 1000;
      const observer = { onRefresh: () => undefined, onUsable: () => undefined, onWarning: () => undefined };
      const monotonicNow = (): number => clockMs;
      const ring = createKeyRing({
        issuers: [settings],
        keys,
        observer,
        monotonicNow,
        proxy: {},
        limitFetches: fetch => fetch(),
        watchFiles: createFileWatch(),
        seedReadOnly: true,
      });
      const used = ring.issuers.get(settings.issuer);
      if (used === undefined) throw new Error('no key ring of the issuer');
      if (state === 'loading') issuer.fault({ kind: 'reset' });
      await ring.start();
      await until(() => used.status().lastResult !== undefined);
      if (state === 'usable' || state === 'loading') return { ring, used };
      issuer.fault({ kind: 'reset' });
      clockMs += (state === 'stale' ? maxAgeSeconds + 1 : cooldownSeconds + 1) * 1000;
      await used.find(withKid('a kid that makes it ask again'));
      await until(() => used.status().lastResult === 'failure');
      return { ring, used };
    },
  };
}
