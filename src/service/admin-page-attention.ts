// What the admin page is made of: the facts, how they are written, and which of them need attention.
import type { GridPolicy } from '../authz/permission-grid.ts';
import type { KeyRingStatus } from '../keys/key-ring.ts';
import { printable } from '../text/printable.ts';
import { type Html, html } from './admin-html.ts';
import type { MetricsSummary } from './metrics-summary.ts';
import type { ReloadStatus, RevocationStatus } from './reload-record.ts';

/** Members of the configuration. */
interface PolicyFacts extends GridPolicy {
  readonly issuers: readonly { readonly issuer: string; readonly accounts: readonly string[] }[];
}

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

interface AttentionPoint {
  readonly text: string;
  /** The first ones, as in the log. */
  readonly problems?: readonly string[];
  /** A section of docs/runbooks.md, named like its alert. */
  readonly runbook?: string;
}

interface IssuerState {
  readonly word: string;
  readonly look: string;
  readonly point: AttentionPoint | undefined;
}

export const maxIssuers = 50;
export const maxTextLength = 300;
const maxProblems = 5;

export function renderAttention(points: readonly AttentionPoint[]): Html {
  return html`<ul>${points.map(
    ({ text, problems = [], runbook }) =>
      html`<li>${text}${problems
        .slice(0, maxProblems)
        .map(problem => html`<br><code>${printable(problem, maxTextLength)}</code>`)}${
        problems.length > maxProblems ? ' The log has more.' : ''
      }${runbook === undefined ? '' : html` <a href="${runbookLink(runbook)}">Runbook ${runbook}</a>`}</li>`,
  )}</ul>`;
}

// The server answers with the text of the page; the browser scrolls to the heading.
function runbookLink(name: string): string {
  return `runbooks.md#:~:text=${encodeURIComponent(`## ${name}`)}`;
}

/** What an operator on call should see first; empty if all is well. */
export function attentionPoints(facts: AdminPageFacts): readonly AttentionPoint[] {
  const { draining, ready, reload, revocations, issuers } = facts;
  const faults = facts.metrics.checks
    .filter(({ reason }) => reason === 'internal')
    .reduce((sum, { count }) => sum + count, 0);
  const others = issuers.slice(maxIssuers).filter(issuer => issuerState(issuer, facts).point !== undefined).length;
  const points: readonly (AttentionPoint | undefined)[] = [
    draining
      ? { text: 'Draining: this instance is stopping. It answers calls until their connections close.' }
      : undefined,
    ready || draining
      ? undefined
      : { text: 'Not ready: no issuer has had usable keys since start.', runbook: 'AccountAuthzNoKeys' },
    ...issuers.slice(0, maxIssuers).map(issuer => issuerState(issuer, facts).point),
    others > 0 ? { text: `${formatCount(others)} more issuers need attention: /readyz lists all of them.` } : undefined,
    reload?.lastResult === 'failure'
      ? {
          text: 'The last change of the configuration was refused. The previous configuration stays in effect.',
          problems: reload.firstProblems,
          runbook: 'AccountAuthzReloadFailed',
        }
      : undefined,
    revocations !== undefined && revocations.problems > 0
      ? {
          text: 'The last change of the revocation list was refused. The previous list stays in force.',
          problems: revocations.firstProblems,
          runbook: 'AccountAuthzRevocationListRefused',
        }
      : undefined,
    faults > 0
      ? {
          text: `Internal errors since start: ${formatCount(faults)}. The log has a line “fault” for each.`,
          runbook: 'AccountAuthzInternalFault',
        }
      : undefined,
  ];
  return points.filter(point => point !== undefined);
}

export function issuerState(status: KeyRingStatus, facts: AdminPageFacts): IssuerState {
  const issuer = printable(status.issuer, maxTextLength);
  switch (status.state) {
    case 'loading':
      return {
        word: 'no keys yet',
        look: 'bad',
        point: { text: `No keys of ${issuer} yet: requests with its tokens get 503.`, runbook: 'AccountAuthzNoKeys' },
      };
    case 'stale': {
      const old = `were not confirmed for more than ${formatDuration(facts.maxAgeSeconds)} and are not used`;
      return {
        word: 'keys too old',
        look: 'bad',
        point: {
          text: `The keys of ${issuer} ${old}: requests with its tokens get 503.`,
          runbook: 'AccountAuthzKeySetOld',
        },
      };
    }
    case 'usable': {
      const failed = `The last refresh for ${issuer} failed. Its keys stay in use for another ${formatRest(status, facts)}.`;
      return {
        word: 'keys usable',
        look: 'good',
        point: status.lastResult === 'failure' ? { text: failed, runbook: 'AccountAuthzKeyRefreshFailing' } : undefined,
      };
    }
  }
}

export function formatRest({ ageSeconds = 0 }: KeyRingStatus, { maxAgeSeconds }: AdminPageFacts): string {
  return formatDuration(maxAgeSeconds - ageSeconds);
}

const counting = new Intl.NumberFormat('en-GB');
// Rounded down, so that `100%` means all of them.
const sharing = new Intl.NumberFormat('en-GB', { style: 'percent', maximumFractionDigits: 1, roundingMode: 'floor' });

/** 1,234 */
export function formatCount(count: number): string {
  return counting.format(count);
}

/** 33.3% */
export function formatShare(part: number, whole: number): string {
  return sharing.format(part / whole);
}

const units = [['d', 86_400] as const, ['h', 3600] as const, ['min', 60] as const, ['s', 1] as const];

/** In at most two units: `4 min 12 s`. */
export function formatDuration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const [[unit, size] = ['s', 1], lower] = units.slice(units.findIndex(each => whole >= each[1]));
  const rest = lower === undefined ? '' : ` ${Math.floor((whole % size) / lower[1])} ${lower[0]}`;
  return `${Math.floor(whole / size)} ${unit}${rest}`;
}

/** A short time in the unit in which it is read best: `250 µs`, `2.5 ms`. */
export function formatShortTime(seconds: number): string {
  const [perSecond, unit] = seconds < 0.001 ? [1e6, 'µs'] : seconds < 1 ? [1e3, 'ms'] : [1, 's'];
  return `${Number((seconds * Number(perSecond)).toPrecision(3))}\u00a0${unit}`;
}

/** `2026-11-21 12:00:03 UTC` */
export function formatInstant(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}
