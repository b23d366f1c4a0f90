// The page for people on `admin`: the state of this process on one screen, made anew for each request. Facts in, HTML out.
// It shows what /readyz and /metrics tell and nothing of any request or token.
import { answerOf, type Reason, refusalAnswers } from '../authz/refusal.ts';
import { foreignText } from '../foreign-text.ts';
import type { KeyRingStatus } from '../keys/key-ring.ts';
import { type Html, html, nothing } from './admin-page-html.ts';
import { renderLatency } from './admin-page-latency.ts';
import { styleElement } from './admin-page-style.ts';
import { shortened, spellCount, spellDuration, spellInstant, spellShare } from './admin-page-wording.ts';
import type { MetricsSummary } from './metrics-summary.ts';
import type { ReloadStatus } from './reload-record.ts';

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
  readonly metrics: MetricsSummary;
}

const maxIssuers = 50;
const maxKids = 12;
const maxKidLength = 20;
const maxIssuerLength = 120;
const maxSettings = 10;
const maxProblemLength = 300;
const maxSettingLength = 80;

/** How often a browser asks again where the reader chose that. */
const reloadSeconds = 10;
export const reloadingQuery = `reload=${reloadSeconds}`;

export function renderAdminPage(facts: AdminPageFacts, query: string): string {
  const reloading = query === reloadingQuery;
  const state = overallState(facts);
  const points = attentionPoints(facts);
  return html`<!doctype html>
<html lang="en-GB">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
${reloading ? html`<meta http-equiv="refresh" content="${reloadSeconds}">` : nothing}
<title>${state.word} &middot; account-authz</title>
<link rel="icon" href="${iconOf(points.length === 0)}">
${styleElement}
</head>
<body>
<header>
<h1>account-authz</h1><span class="pill ${state.look}">${state.word}</span>
<p class="facts"><span>Version ${facts.version}</span> <span>Node ${facts.nodeVersion}</span> <span>Up ${spellDuration(facts.uptimeSeconds)}</span> <span>As of ${spellTime(facts.nowMs)}</span></p>
<p class="facts">${reloading ? html`<span>Reloads every ${reloadSeconds} seconds</span> <a href="./">Stop</a>` : html`<span><a href="./">Reload</a></span> <a href="?${reloadingQuery}">Reload every ${reloadSeconds} seconds</a>`}</p>
</header>
<main>
${renderAttention(points)}
${renderIssuers(facts)}
<div class="column">
${renderDecisions(facts.metrics.checks)}
${renderTokenCache(facts)}
</div>
<div class="column">
<section aria-labelledby="latency"><h2 id="latency">How long checks took since start</h2>
${renderLatency(facts.metrics.latency)}
</section>
${renderReload(facts)}
</div>
</main>
<footer><nav aria-label="Other pages"><ul><li><a href="metrics">/metrics</a></li><li><a href="readyz">/readyz</a></li><li><a href="livez">/livez</a></li></ul></nav></footer>
</body>
</html>
`.markup;
}

interface State {
  readonly word: string;
  readonly look: 'good' | 'bad';
}

function overallState({ ready, draining }: AdminPageFacts): State {
  if (draining) return { word: 'Draining', look: 'bad' };
  return ready ? { word: 'Ready', look: 'good' } : { word: 'Not ready', look: 'bad' };
}

/** What somebody who was woken up should see first; nothing where all is well. */
function attentionPoints(facts: AdminPageFacts): readonly string[] {
  const faults = countOf(facts.metrics.checks, 'internal');
  return [
    ...(facts.draining ? ['Draining: calls are answered while they come; no new ones are wanted.'] : []),
    ...(facts.ready || facts.draining ? [] : ['Not ready: no issuer has had usable keys since start.']),
    ...facts.issuers.slice(0, maxIssuers).flatMap(issuer => issuerPoints(issuer, facts.maxAgeSeconds)),
    ...(facts.reload?.lastResult === 'failure'
      ? ['The last reload was refused. The configuration before it stays in effect.']
      : []),
    ...(faults === 0
      ? []
      : [
          `Checks that ended in a fault of ours since start: ${spellCount(faults)}. The log has a line “fault” for each.`,
        ]),
  ];
}

function issuerPoints(facts: KeyRingStatus, maxAgeSeconds: number): readonly string[] {
  const issuer = foreignText(facts.issuer, maxIssuerLength);
  switch (facts.state) {
    case 'loading':
      return [`No keys of ${issuer} yet: its tokens are answered 503.`];
    case 'stale':
      return [
        `The keys of ${issuer} were not confirmed for more than ${spellDuration(maxAgeSeconds)} and are not used: its tokens are answered 503.`,
      ];
    case 'usable':
      if (facts.lastResult !== 'failure') return [];
      return [
        `The last refresh for ${issuer} failed. Its keys stay in use for another ${spellRest(facts, maxAgeSeconds)}.`,
      ];
  }
}

function renderAttention(points: readonly string[]): Html {
  if (points.length === 0) {
    return html`<section class="wide attention quiet" aria-labelledby="attention"><h2 id="attention">Nothing needs a look.</h2></section>`;
  }
  return html`<section class="wide attention" aria-labelledby="attention"><h2 id="attention">Needs a look</h2>
<ul>${points.map(point => html`<li>${point}</li>`)}</ul></section>`;
}

function renderIssuers(facts: AdminPageFacts): Html {
  const { issuers, metrics, maxAgeSeconds } = facts;
  const left = issuers.length - maxIssuers;
  return html`<section class="wide" aria-labelledby="issuers"><h2 id="issuers">Issuers and their keys</h2>
<div class="issuers">${issuers.slice(0, maxIssuers).map(issuer => renderIssuer(issuer, metrics, maxAgeSeconds))}</div>
${left > 0 ? html`<p class="muted">${spellCount(left)} more: <a href="readyz">/readyz</a> has them all.</p>` : nothing}
</section>`;
}

const issuerStates: Readonly<Record<KeyRingStatus['state'], State>> = {
  loading: { word: 'no keys yet', look: 'bad' },
  usable: { word: 'keys usable', look: 'good' },
  stale: { word: 'keys too old', look: 'bad' },
};

function renderIssuer(facts: KeyRingStatus, metrics: MetricsSummary, maxAgeSeconds: number): Html {
  const { word, look } = issuerStates[facts.state];
  const refreshes = metrics.refreshes.get(facts.issuer) ?? { success: 0, failure: 0 };
  return html`<article class="issuer"><h3>${foreignText(facts.issuer, maxIssuerLength)}</h3>
<dl>
${pair('State', html`<span class="pill ${look}">${word}</span>`)}
${pair('Keys in use', spellCount(facts.keys))}
${pair('Confirmed', spellConfirmed(facts, maxAgeSeconds))}
${pair('Last refresh', spellLastRefresh(facts))}
${pair('Since start', `${spellCount(refreshes.success)} refreshes succeeded, ${spellCount(refreshes.failure)} failed`)}
${pair('Key ids', renderKids(facts.kids))}
</dl></article>`;
}

function spellConfirmed(facts: KeyRingStatus, maxAgeSeconds: number): string {
  if (facts.ageSeconds === undefined) return 'not yet';
  const ago = `${spellDuration(facts.ageSeconds)} ago`;
  return facts.state === 'usable' ? `${ago}; good for another ${spellRest(facts, maxAgeSeconds)}` : ago;
}

function spellRest({ ageSeconds = 0 }: KeyRingStatus, maxAgeSeconds: number): string {
  return spellDuration(maxAgeSeconds - ageSeconds);
}

function spellLastRefresh({ lastResult, lastProblem }: KeyRingStatus): string {
  switch (lastResult) {
    case undefined:
      return 'none yet';
    case 'success':
      return 'succeeded';
    case 'failure':
      return `failed: ${foreignText(lastProblem ?? 'not named', maxProblemLength)}`;
  }
}

function renderKids(kids: readonly string[]): Html {
  if (kids.length === 0) return html`none`;
  const left = kids.length - maxKids;
  return html`<ul class="kids">${kids.slice(0, maxKids).map(kid => html`<li><code>${shortened(kid, maxKidLength)}</code></li>`)}${left > 0 ? html`<li class="muted">and ${spellCount(left)} more</li>` : nothing}</ul>`;
}

function pair(name: string, value: Html | string): Html {
  return html`<div class="pair"><dt>${name}</dt><dd>${value}</dd></div>`;
}

type CheckCounts = MetricsSummary['checks'];

function renderDecisions(checks: CheckCounts): Html {
  const total = checks.reduce((sum, { count }) => sum + count, 0);
  const row = (reason: string, decision: string, answer: string): Html => {
    const count = countOf(checks, reason);
    return html`<tr${count === 0 ? html` class="never"` : nothing}><th scope="row"><code>${breakable(reason)}</code></th><td>${answer}</td><td class="number">${spellCount(count)}</td><td class="share">${count === 0 ? nothing : drawShare(decision, count, total)}</td></tr>
`;
  };
  return html`<section aria-labelledby="decisions"><h2 id="decisions">Decisions since start</h2>
<table><thead><tr><th scope="col">Reason</th><th scope="col">Answer</th><th scope="col" class="number">Checks</th><th scope="col" class="share">Share</th></tr></thead>
<tbody>${row('allowed', 'allow', 'allow')}${reasons.map(reason => row(reason, answerOf(reason).decision, String(answerOf(reason).httpStatus)))}</tbody>
<tfoot><tr><th scope="row">All</th><td></td><td class="number">${spellCount(total)}</td><td class="share"></td></tr></tfoot></table></section>`;
}

/** May go on in the next line after an underscore. */
function breakable(reason: string): readonly Html[] {
  return reason.split(/(?<=_)/).map((word, index) => (index === 0 ? html`${word}` : html`<wbr>${word}`));
}

const reasons = Object.keys(refusalAnswers) as readonly Reason[];

function countOf(checks: CheckCounts, reason: string): number {
  return checks.filter(check => check.reason === reason).reduce((sum, { count }) => sum + count, 0);
}

function drawShare(decision: string, count: number, total: number): Html {
  const words = spellShare(count, total);
  const width = `${Math.max(1, (count / total) * 100).toFixed(2)}%`;
  return html`<svg role="img" aria-label="${words}"><rect class="track" width="100%" height="100%" rx="4"/><rect class="${decision}" width="${width}" height="100%" rx="4"/></svg>`;
}

function renderTokenCache({ metrics, maxTokens }: AdminPageFacts): Html {
  const { entries, hits, misses } = metrics.tokenCache;
  const lookups = hits + misses;
  return html`<section aria-labelledby="cache"><h2 id="cache">Cache of verified tokens</h2>
<dl>
${pair('Tokens', maxTokens === 0 ? 'turned off' : `${spellCount(entries)} of at most ${spellCount(maxTokens)}`)}
${pair('Found there', lookups === 0 ? 'no look-up yet' : `${spellShare(hits, lookups)} of ${spellCount(lookups)} look-ups`)}
${pair('Hits', spellCount(hits))}
${pair('Misses', spellCount(misses))}
</dl></section>`;
}

function renderReload({ reload, nowMs }: AdminPageFacts): Html {
  return html`<section aria-labelledby="reload"><h2 id="reload">Configuration</h2>
<dl>${pair('Last reload', spellReload(reload))}
${reload?.lastAtSeconds === undefined ? nothing : pair('When', html`${spellDuration(nowMs / 1000 - reload.lastAtSeconds)} ago, ${spellTime(reload.lastAtSeconds * 1000)}`)}
${reload === undefined || reload.needsRestart.length === 0 ? nothing : pair('Needs a restart', spellSettings(reload.needsRestart))}
</dl></section>`;
}

function spellReload(reload: ReloadStatus | undefined): string {
  switch (reload?.lastResult) {
    case undefined:
      return 'not reloaded since start';
    case 'success':
      return 'in effect';
    case 'failure':
      return `refused, problems: ${spellCount(reload?.problems ?? 0)}, named in the log; the one before stays in effect`;
  }
}

function spellSettings(settings: readonly string[]): string {
  const named = settings.slice(0, maxSettings).map(setting => foreignText(setting, maxSettingLength));
  const left = settings.length - maxSettings;
  return left > 0 ? `${named.join(', ')} and ${spellCount(left)} more` : named.join(', ');
}

function spellTime(milliseconds: number): Html {
  return html`<time datetime="${new Date(milliseconds).toISOString()}">${spellInstant(milliseconds)}</time>`;
}

/** A disc, and a disc with a gap: told apart without colour, too. */
function iconOf(isCalm: boolean): string {
  const shape = isCalm
    ? "<circle cx='8' cy='8' r='7' fill='#1f7a57'/>"
    : "<circle cx='8' cy='8' r='5' fill='none' stroke='#d9601a' stroke-width='4'/>";
  return `data:image/svg+xml,${encodeURIComponent(`<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'>${shape}</svg>`)}`;
}
