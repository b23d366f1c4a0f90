// The admin page: the state of this process on one screen, built for each request, and what of it needs attention. It shows what /readyz
// and /metrics show, and nothing of any request or token.
import { type GridCell, type GridPolicy, permissionGrid } from '../authz/permission-grid.ts';
import { answerOf, type Reason, refusalAnswers } from '../authz/refusal.ts';
import type { KeyRingStatus } from '../keys/key-ring.ts';
import { printable } from '../text/printable.ts';
import { codes, type Html, html, pairList, pairs, section, styleElement } from './admin-html.ts';
import type { LatencySummary, MetricsSummary } from './metrics-summary.ts';
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

/** How often the browser reloads the page, if the reader chose that. */
const reloadSeconds = 10;
const reloadingQuery = `reload=${reloadSeconds}`;

export function renderAdminPage(given: AdminPageFacts, query: string): string {
  const facts = { ...given, issuers: attentionFirst(given) };
  const { version, nodeVersion, uptimeSeconds, nowMs, metrics } = facts;
  const reloads = query === reloadingQuery;
  const points = attentionPoints(facts);
  const [word, look] = stateOf(facts, points.length === 0);
  return html`<!doctype html>
<html lang="en-GB">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
${reloads ? html`<meta http-equiv="refresh" content="${reloadSeconds}">` : ''}
<title>${word} &middot; account-authz</title>
<link rel="icon" href="data:,">
${styleElement}
</head>
<body>
<header>
<h1>account-authz <span class="${look}">${word}</span></h1>
<p>Version ${version} &middot; Node ${nodeVersion} &middot; Up ${formatDuration(uptimeSeconds)} &middot; As of ${formatInstant(nowMs)}</p>
<p>${reloads ? html`This page refreshes every ${reloadSeconds} seconds <a href=".">Stop</a>` : html`<a href=".">Refresh this page</a> <a href="?${reloadingQuery}">Refresh it every ${reloadSeconds} seconds</a>`}</p>
</header>
<main>
${points.length === 0 ? section('wide', 'Nothing needs attention.', html``) : section('wide alarm', 'Needs attention', renderAttention(points))}
${section('wide', 'Issuers and their keys', renderIssuers(facts))}
${section('wide routes', 'Routes', renderRoutes(facts.policy))}
${section('', 'Decisions since start', renderDecisions(metrics.checks))}
${section('', 'Check duration since start', renderLatency(metrics.latency))}
${section('', 'Cache of verified tokens', renderTokenCache(facts))}
${section('', 'Configuration', renderReload(facts))}
${section('', 'Revocation list', renderRevocations(facts))}
</main>
<footer><nav aria-label="Other pages"><a href="metrics">/metrics</a> <a href="readyz">/readyz</a> <a href="livez">/livez</a></nav></footer>
</body>
</html>
`.markup;
}

function stateOf({ draining, ready }: AdminPageFacts, isWell: boolean): readonly [word: string, look: string] {
  if (draining) return ['Draining', 'bad'];
  if (!ready) return ['Not ready', 'bad'];
  return isWell ? ['Ready', 'good'] : ['Ready, with problems', 'bad'];
}

// With a thousand issuers the page shows some of them.
function attentionFirst(facts: AdminPageFacts): readonly KeyRingStatus[] {
  const needsAttention = (status: KeyRingStatus): boolean => issuerState(status, facts).point !== undefined;
  return [...facts.issuers.filter(needsAttention), ...facts.issuers.filter(status => !needsAttention(status))];
}

function renderIssuers(facts: AdminPageFacts): Html {
  const left = facts.issuers.length - maxIssuers;
  return html`<div class="issuers">${facts.issuers.slice(0, maxIssuers).map(issuer => renderIssuer(issuer, facts))}</div>
${left > 0 ? html`<p class="muted">${formatCount(left)} more: <a href="readyz">/readyz</a> lists all of them.</p>` : ''}`;
}

function renderIssuer(status: KeyRingStatus, facts: AdminPageFacts): Html {
  const { word, look } = issuerState(status, facts);
  const { success, failure } = facts.metrics.refreshes.get(status.issuer) ?? { success: 0, failure: 0 };
  const ago = status.ageSeconds === undefined ? 'not yet' : `${formatDuration(status.ageSeconds)} ago`;
  const rest = status.state === 'usable' ? `; usable for another ${formatRest(status, facts)}` : '';
  const failed = `failed: ${printable(status.lastProblem ?? 'not named', maxTextLength)}`;
  return html`<article><h3>${printable(status.issuer, maxTextLength)}</h3>
${pairs({
  State: html`<span class="${look}">${word}</span>`,
  'Keys in use': formatCount(status.keys),
  Confirmed: `${ago}${rest}`,
  'Last refresh': { success: 'succeeded', failure: failed, none: 'none yet' }[status.lastResult ?? 'none'],
  'Since start': `${formatCount(success)} refreshes succeeded, ${formatCount(failure)} failed`,
  'Key ids': codes(status.kids),
  'May speak for': formatAccounts(facts.policy.issuers.find(({ issuer }) => issuer === status.issuer)?.accounts ?? []),
})}</article>`;
}

// Their names are those of customers, and anybody may read this page.
function formatAccounts(entries: readonly string[]): string {
  if (entries.length === 1 && entries[0] === '*') return 'all accounts';
  return entries.length === 1 ? '1 entry of accounts' : `${formatCount(entries.length)} entries of accounts`;
}

type CheckCounts = MetricsSummary['checks'];

function countOf(checks: CheckCounts, reason: string): number {
  return checks.filter(check => check.reason === reason).reduce((sum, { count }) => sum + count, 0);
}

function renderDecisions(checks: CheckCounts): Html {
  const reasons = Object.keys(refusalAnswers) as readonly Reason[];
  const rows = reasons.map(reason => ({
    reason,
    look: answerOf(reason).decision,
    answer: answerOf(reason).httpStatus,
  }));
  return countTable(
    'Reason and answer',
    [{ reason: 'allowed', look: 'allow', answer: '' }, ...rows].map(({ reason, look, answer }) => {
      return { name: html`<code>${reason}</code> ${answer}`, count: countOf(checks, reason), look };
    }),
  );
}

function renderLatency({ count, sumSeconds, buckets }: LatencySummary): Html {
  if (count === 0) return html`<p>No check yet.</p>`;
  let atMost = 0;
  const rows = buckets.map((bucket, index) => {
    atMost += bucket.count;
    const lower = formatShortTime(buckets[index - 1]?.upToSeconds ?? 0);
    const upper = formatShortTime(bucket.upToSeconds);
    const isLast = bucket.upToSeconds === Infinity;
    const name = isLast ? `more than ${lower}` : index === 0 ? `at most ${upper}` : `${lower} to ${upper}`;
    return { name, bound: isLast ? name : `at most ${upper}`, count: bucket.count, look: 'deny', atMost };
  });
  // The bound of the bucket that holds the quantile: true as it stands, an interpolation would be a guess.
  const quantile = (share: number): string => rows.find(row => row.atMost >= count * share)?.bound ?? '';
  return html`<p>Half of the checks took ${quantile(0.5)}, 99 of 100 took ${quantile(0.99)}. Mean ${formatShortTime(sumSeconds / count)}.</p>
${countTable(
  'Time',
  rows.filter(row => row.count > 0),
)}`;
}

function renderTokenCache({ metrics: { tokenCache }, maxTokens }: AdminPageFacts): Html {
  const { entries, hits, misses } = tokenCache;
  const share = hits + misses === 0 ? '' : ` (${formatShare(hits, hits + misses)})`;
  return pairs({
    Tokens: maxTokens === 0 ? 'turned off' : `${formatCount(entries)} of at most ${formatCount(maxTokens)}`,
    Hits: `${formatCount(hits)}${share}`,
    Misses: formatCount(misses),
  });
}

function renderReload({ reload, nowMs }: AdminPageFacts): Html {
  if (reload?.lastResult === undefined) return pairs({ 'Last reload': 'not reloaded since start' });
  const { lastAtSeconds = 0, problems, needsRestart } = reload;
  const refused = `refused, with ${formatProblemCount(problems)} in the log; the previous one stays in effect`;
  return pairs({
    'Last reload': reload.lastResult === 'success' ? 'in effect' : refused,
    When: `${formatDuration(nowMs / 1000 - lastAtSeconds)} ago, ${formatInstant(lastAtSeconds * 1000)}`,
    'Needs a restart': codes(needsRestart),
  });
}

function renderRevocations({ revocations, nowMs }: AdminPageFacts): Html {
  if (revocations === undefined) return html`<p>No list is configured.</p>`;
  const { entries, loadedAtSeconds, problems } = revocations;
  const refused = `refused, with ${formatProblemCount(problems)} in the log; the previous one stays in force`;
  return pairs({
    Entries: formatCount(entries),
    'In force': `for ${formatDuration(nowMs / 1000 - loadedAtSeconds)}, since ${formatInstant(loadedAtSeconds * 1000)}`,
    'Last change': problems === 0 ? 'in force' : refused,
  });
}

function formatProblemCount(count: number): string {
  return count === 1 ? '1 problem' : `${formatCount(count)} problems`;
}

const maxRows = 30;
const maxPathLength = 200;
const maxNameLength = 64;

/** Who may do what: each role and scope with its methods, by route. */
export function renderRoutes(policy: AdminPageFacts['policy']): Html {
  const [rolesOn, scopesOn] = [permissionGrid(policy, 'roles'), permissionGrid(policy, 'scopes')];
  const shown = (cells: readonly GridCell[]): Html => {
    const allowed = cells.filter(({ grants }) => grants.length > 0);
    const rows = allowed
      .slice(0, maxRows)
      .map(({ name, grants }) => [printable(name, maxNameLength), codes(grants)] as const);
    return html`${rows.length === 0 ? 'none' : pairList(rows)}${more(allowed.length)}`;
  };
  const row = ({ path }: AdminPageFacts['policy']['routes'][number], i: number): Html =>
    html`<tr><th scope="row"><code>${printable(path, maxPathLength)}</code></th><td>${shown(rolesOn(i))}</td><td>${policy.scopes === undefined ? 'not looked at' : shown(scopesOn(i))}</td></tr>\n`;
  return html`<table><thead><tr><th scope="col">Path</th><th scope="col">Roles</th><th scope="col">Scopes</th></tr></thead>
<tbody>${policy.routes.slice(0, maxRows).map(row)}</tbody></table>${more(policy.routes.length)}`;
}

function more(count: number): Html {
  return count > maxRows ? html`<p class="muted">and ${formatCount(count - maxRows)} more</p>` : html``;
}

/** Counted checks, with a bar for the share of each row. */
function countTable(
  head: string,
  rows: readonly { readonly name: Html | string; readonly count: number; readonly look: string }[],
): Html {
  const total = rows.reduce((sum, { count }) => sum + count, 0);
  const bar = (count: number, look: string): Html =>
    html`<svg role="img" aria-label="${formatShare(count, total)}"><rect class="${look}" width="${((count / total) * 100).toFixed(2)}%" height="100%"/></svg>`;
  return html`<table><thead><tr><th scope="col">${head}</th><th scope="col" class="number">Checks</th><th scope="col" class="share">Share</th></tr></thead>
<tbody>${rows.map(({ name, count, look }) => html`<tr class="${count === 0 ? 'muted' : ''}"><th scope="row">${name}</th><td class="number">${formatCount(count)}</td><td class="share">${count === 0 ? '' : bar(count, look)}</td></tr>\n`)}</tbody>
<tfoot><tr><th scope="row">All</th><td class="number">${formatCount(total)}</td><td class="share"></td></tr></tfoot></table>`;
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

const maxIssuers = 50;
const maxTextLength = 300;
const maxProblems = 5;

function renderAttention(points: readonly AttentionPoint[]): Html {
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
function attentionPoints(facts: AdminPageFacts): readonly AttentionPoint[] {
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

function issuerState(status: KeyRingStatus, facts: AdminPageFacts): IssuerState {
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

function formatRest({ ageSeconds = 0 }: KeyRingStatus, { maxAgeSeconds }: AdminPageFacts): string {
  return formatDuration(maxAgeSeconds - ageSeconds);
}

const counting = new Intl.NumberFormat('en-GB');
// Rounded down, so that `100%` means all of them.
const sharing = new Intl.NumberFormat('en-GB', { style: 'percent', maximumFractionDigits: 1, roundingMode: 'floor' });

/** 1,234 */
function formatCount(count: number): string {
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
function formatInstant(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}
