// What the admin page shows, as the service gives it.
import type { KeyRingStatus } from '../keys/issuer-ring.ts';
import type { PolicyFacts } from './admin-page-policy.ts';
import type { MetricsSummary } from './metrics-summary.ts';
import type { ReloadStatus, RevocationStatus } from './reload-record.ts';

export interface AdminPageFacts {
  readonly version: string;
  readonly nodeVersion: string;
  /** Wall time. */
  readonly nowMs: number;
  readonly uptimeSeconds: number;
  readonly ready: boolean;
  readonly draining: boolean;
  readonly issuers: readonly KeyRingStatus[];
  /** `keys.maxAgeSeconds` and `cache.maxTokens` of the configuration in effect. */
  readonly maxAgeSeconds: number;
  readonly maxTokens: number;
  readonly reload?: ReloadStatus | undefined;
  /** Undefined without a list. */
  readonly revocations?: RevocationStatus | undefined;
  readonly metrics: MetricsSummary;
  /** The policy of the configuration in effect. */
  readonly policy: PolicyFacts;
}
