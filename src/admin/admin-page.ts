// The admin page: the state of this process on one screen, built for each request. It shows what /readyz and /metrics show, and nothing
// of any request or token.
import { answerOf, type Reason, refusalAnswers } from '../authz/refusal.ts';
import type { KeyRingStatus } from '../keys/key-ring.ts';
import type { LatencySummary, MetricsSummary } from '../operations/metrics-summary.ts';
import type { ReloadStatus, RevocationStatus } from '../operations/reload-record.ts';
import { printable } from '../text/printable.ts';
import { formatCount, formatDuration, formatInstant, formatShare, formatShortTime } from './admin-page-format.ts';
import { type Html, html } from './admin-page-html.ts';
import { styleElement } from './admin-page-style.ts';

export interface AdminPageFacts {
  readonly version: string;
  readonly nodeVersion: string;
  /** Wall time. */
  readonly nowMs: number;
  readonly uptimeSeconds: number;
  readonly ready: boolean;
  readonly draining: boolean;
  readonly issuers: readonly KeyRingStatus[];
  /** Of the configuration in effect. */
  readonly maxAgeSeconds: number;
  readonly maxTokens: number;
  readonly reload?: ReloadStatus | undefined;
  /** Undefined without a list. */
  readonly revocations?: RevocationStatus | undefined;
  readonly metrics: MetricsSummary;
}

const maxIssuers = 50;
const maxNames = 12;
const maxNameLength = 64;
const maxTextLength = 300;

/** How often the browser reloads the page, if the reader chose that. */
const reloadSeconds = 10;
const reloadingQuery = `reload=${reloadSeconds}`;

export function renderAdminPage(given: AdminPageFacts, query: string): string {
  const facts = { ...given, issuers: attentionFirst(given) };
  const { version, nodeVersion, uptimeSeconds, nowMs, metrics } = facts;
  const reloads = query === reloadingQuery;
  const [word, look] = facts.draining ? ['Draining', 'bad'] : facts.ready ? ['Ready', 'good'] : ['Not ready', 'bad'];
  const points = attentionPoints(facts);
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
<p>${reloads ? html`Reloads every ${reloadSeconds} seconds <a href="../operations/">Stop</a>` : html`<a href="../operations/">Reload</a> <a href="?${reloadingQuery}">Reload every ${reloadSeconds} seconds</a>`}</p>
</header>
<main>
${section('wide', points.length === 0 ? 'Nothing needs attention.' : 'Needs attention', html`<ul>${points.map(point => html`<li>${point}</li>`)}</ul>`)}
${section('wide', 'Issuers and their keys', renderIssuers(facts))}
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

// With a thousand issuers the page shows some of them.
function attentionFirst(facts: AdminPageFacts): readonly KeyRingStatus[] {
  const needsAttention = (status: KeyRingStatus): boolean => issuerState(status, facts).point !== '';
  return [...facts.issuers.filter(needsAttention), ...facts.issuers.filter(status => !needsAttention(status))];
}

/** What an operator on call should see first; empty if all is well. */
function attentionPoints(facts: AdminPageFacts): readonly string[] {
  const { draining, ready, reload, revocations, issuers } = facts;
  const faults = countOf(facts.metrics.checks, 'internal');
  const others = issuers.slice(maxIssuers).filter(issuer => issuerState(issuer, facts).point !== '').length;
  return [
    draining ? 'Draining: this instance is stopping. It answers calls until their connections close.' : '',
    ready || draining ? '' : 'Not ready: no issuer has had usable keys since start.',
    ...issuers.slice(0, maxIssuers).map(issuer => issuerState(issuer, facts).point),
    others > 0 ? `${formatCount(others)} more issuers need attention: /readyz lists all of them.` : '',
    reload?.lastResult === 'failure' ? 'The last reload was refused. The previous configuration stays in effect.' : '',
    revocations !== undefined && revocations.problems > 0
      ? 'The last change of the revocation list was refused. The previous list stays in force.'
      : '',
    faults > 0 ? `Internal errors since start: ${formatCount(faults)}. The log has a line “fault” for each.` : '',
  ].filter(point => point !== '');
}

function issuerState(status: KeyRingStatus, facts: AdminPageFacts): { word: string; look: string; point: string } {
  const issuer = printable(status.issuer, maxTextLength);
  switch (status.state) {
    case 'loading':
      return { word: 'no keys yet', look: 'bad', point: `No keys of ${issuer} yet: requests with its tokens get 503.` };
    case 'stale': {
      const old = `were not confirmed for more than ${formatDuration(facts.maxAgeSeconds)} and are not used`;
      return {
        word: 'keys too old',
        look: 'bad',
        point: `The keys of ${issuer} ${old}: requests with its tokens get 503.`,
      };
    }
    case 'usable': {
      const failed = `The last refresh for ${issuer} failed. Its keys stay in use for another ${spellRest(status, facts)}.`;
      return { word: 'keys usable', look: 'good', point: status.lastResult === 'failure' ? failed : '' };
    }
  }
}

function spellRest({ ageSeconds = 0 }: KeyRingStatus, { maxAgeSeconds }: AdminPageFacts): string {
  return formatDuration(maxAgeSeconds - ageSeconds);
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
  const rest = status.state === 'usable' ? `; usable for another ${spellRest(status, facts)}` : '';
  const failed = `failed: ${printable(status.lastProblem ?? 'not named', maxTextLength)}`;
  return html`<article><h3>${printable(status.issuer, maxTextLength)}</h3>
${pairs({
  State: html`<span class="${look}">${word}</span>`,
  'Keys in use': formatCount(status.keys),
  Confirmed: `${ago}${rest}`,
  'Last refresh': { success: 'succeeded', failure: failed, none: 'none yet' }[status.lastResult ?? 'none'],
  'Since start': `${formatCount(success)} refreshes succeeded, ${formatCount(failure)} failed`,
  'Key ids': codes(status.kids),
})}</article>`;
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
    const name =
      bucket.upToSeconds === Infinity ? `more than ${lower}` : `at most ${formatShortTime(bucket.upToSeconds)}`;
    return { name, count: bucket.count, look: 'deny', atMost };
  });
  // The bound of the bucket that holds the quantile: true as it stands, an interpolation would be a guess.
  const quantile = (share: number): string => rows.find(row => row.atMost >= count * share)?.name ?? '';
  return html`<p>Half of the checks took ${quantile(0.5)}, 99 of 100 took ${quantile(0.99)}. Mean ${formatShortTime(sumSeconds / count)}.</p>
${countTable('Time', rows)}`;
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
  const refused = `refused, with ${spellProblems(problems)} in the log; the previous one stays in effect`;
  return pairs({
    'Last reload': reload.lastResult === 'success' ? 'in effect' : refused,
    When: `${formatDuration(nowMs / 1000 - lastAtSeconds)} ago, ${formatInstant(lastAtSeconds * 1000)}`,
    'Needs a restart': codes(needsRestart),
  });
}

function renderRevocations({ revocations, nowMs }: AdminPageFacts): Html {
  if (revocations === undefined) return html`<p>No list is configured.</p>`;
  const { entries, loadedAtSeconds, problems } = revocations;
  const refused = `refused, with ${spellProblems(problems)} in the log; the previous one stays in force`;
  return pairs({
    Entries: formatCount(entries),
    'In force': `for ${formatDuration(nowMs / 1000 - loadedAtSeconds)}, since ${formatInstant(loadedAtSeconds * 1000)}`,
    'Last change': problems === 0 ? 'in force' : refused,
  });
}

function spellProblems(count: number): string {
  return count === 1 ? '1 problem' : `${formatCount(count)} problems`;
}

function section(look: string, heading: string, content: Html): Html {
  const [id = ''] = heading.toLowerCase().split(' ', 1);
  return html`<section class="${look}" aria-labelledby="${id}"><h2 id="${id}">${heading}</h2>${content}</section>`;
}

function pairs(rows: Readonly<Record<string, Html | string>>): Html {
  return html`<dl>${Object.entries(rows).map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>\n`)}</dl>`;
}

function codes(names: readonly string[]): Html {
  const shown = names.slice(0, maxNames).map(name => html`<code>${printable(name, maxNameLength)}</code> `);
  return html`${names.length === 0 ? 'none' : shown}${names.length > maxNames ? `and ${names.length - maxNames} more` : ''}`;
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
