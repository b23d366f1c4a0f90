// What needs attention, first on the admin page: each point with its problems and the runbook of the alert that it belongs to.
import type { KeyRingStatus } from '../keys/issuer-ring.ts';
import { printable } from '../text/printable.ts';
import type { AdminPageFacts } from './admin-page-facts.ts';
import { formatCount, formatDuration } from './admin-page-format.ts';
import { type Html, html } from './admin-page-html.ts';

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
      }${runbook === undefined ? '' : html` Runbook: <code>docs/runbooks.md#${runbook.toLowerCase()}</code>`}</li>`,
  )}</ul>`;
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
