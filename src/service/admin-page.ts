// The admin page: the state of this process on one screen, built for each request, and what of it needs attention. It shows nothing of any
// request or token.
import { type GridCell, type GridPolicy, permissionGrid } from '../authz/permission-grid.ts';
import { refusalAnswers } from '../authz/refusal.ts';
import type { KeyRingStatus } from '../keys/key-ring.ts';
import { printable } from '../text/printable.ts';
import { codes, type Html, html, pairList, pairs, section, styleElement } from './admin-html.ts';
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
  /** `keys.maxAgeSeconds` of the configuration in effect. */
  readonly maxAgeSeconds: number;
  readonly reload?: ReloadStatus | undefined;
  /** Undefined without a list. */
  readonly revocations?: RevocationStatus | undefined;
  /** The number of checks by reason, as in /metrics. */
  readonly decisions: ReadonlyMap<string, number>;
  /** Members of the configuration in effect. */
  readonly policy: GridPolicy & {
    readonly issuers: readonly { readonly issuer: string; readonly accounts: readonly string[] }[];
  };
}

/** How often the browser reloads the page, if the reader chose that. */
const reloadSeconds = 10;
const reloadingQuery = `reload=${reloadSeconds}`;

export function renderAdminPage(given: AdminPageFacts, query: string): string {
  const facts = { ...given, issuers: attentionFirst(given) };
  const { version, nodeVersion, uptimeSeconds, nowMs } = facts;
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
${section('', 'Decisions since start', renderDecisions(facts.decisions))}
${section('', 'Configuration', renderConfiguration(facts))}
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
  const needsAttention = (status: KeyRingStatus): boolean => issuerPoint(status, facts) !== undefined;
  return [...facts.issuers.filter(needsAttention), ...facts.issuers.filter(status => !needsAttention(status))];
}

function renderIssuers(facts: AdminPageFacts): Html {
  const left = facts.issuers.length - maxIssuers;
  return html`<div class="issuers">${facts.issuers.slice(0, maxIssuers).map(issuer => renderIssuer(issuer, facts))}</div>
${left > 0 ? html`<p class="muted">${formatCount(left)} more: <a href="readyz">/readyz</a> lists all of them.</p>` : ''}`;
}

function renderIssuer(status: KeyRingStatus, facts: AdminPageFacts): Html {
  const [word, look] = keyStates[status.state];
  const ago = status.ageSeconds === undefined ? 'not yet' : `${formatDuration(status.ageSeconds)} ago`;
  const rest = status.state === 'usable' ? `; usable for another ${formatRest(status, facts)}` : '';
  const failed = `failed: ${printable(status.lastProblem ?? 'not named', maxTextLength)}`;
  return html`<article><h3>${printable(status.issuer, maxTextLength)}</h3>
${pairs({
  State: html`<span class="${look}">${word}</span>`,
  'Keys in use': formatCount(status.keys),
  Confirmed: `${ago}${rest}`,
  'Last refresh': { success: 'succeeded', failure: failed, none: 'none yet' }[status.lastResult ?? 'none'],
  'Key ids': codes(status.kids),
  'May speak for': formatAccounts(facts.policy.issuers.find(({ issuer }) => issuer === status.issuer)?.accounts ?? []),
})}</article>`;
}

// Their names are those of customers, and anybody may read this page.
function formatAccounts(entries: readonly string[]): string {
  if (entries.length === 1 && entries[0] === '*') return 'all accounts';
  return entries.length === 1 ? '1 entry of accounts' : `${formatCount(entries.length)} entries of accounts`;
}

function renderDecisions(decisions: AdminPageFacts['decisions']): Html {
  const row = (reason: string, answer: number | string): Html => {
    const count = decisions.get(reason) ?? 0;
    return html`<tr class="${count === 0 ? 'muted' : ''}"><th scope="row"><code>${reason}</code> ${answer}</th><td class="number">${formatCount(count)}</td></tr>\n`;
  };
  const refusals = Object.entries(refusalAnswers).map(([reason, { httpStatus }]) => row(reason, httpStatus));
  const total = [...decisions.values()].reduce((sum, count) => sum + count, 0);
  return html`<table><thead><tr><th scope="col">Reason and answer</th><th scope="col" class="number">Checks</th></tr></thead>
<tbody>${row('allowed', '')}${refusals}</tbody>
<tfoot><tr><th scope="row">All</th><td class="number">${formatCount(total)}</td></tr></tfoot></table>`;
}

function renderConfiguration({ reload, revocations, nowMs }: AdminPageFacts): Html {
  const since = (seconds: number): string =>
    `${formatDuration(nowMs / 1000 - seconds)} ago, ${formatInstant(seconds * 1000)}`;
  const refused = (problems: number): string =>
    `refused, with ${formatProblemCount(problems)} in the log; the previous one stays in effect`;
  return pairs({
    'Last reload': { success: 'in effect', failure: refused(reload?.problems ?? 0), none: 'not reloaded since start' }[
      reload?.lastResult ?? 'none'
    ],
    ...(reload?.lastAtSeconds !== undefined && { When: since(reload.lastAtSeconds) }),
    'Needs a restart': codes(reload?.needsRestart ?? []),
    'Revocation list':
      revocations === undefined
        ? 'not configured'
        : `${formatCount(revocations.entries)} entries, ${revocations.source ? 'confirmed' : 'loaded'} ${
            revocations.loadedAtSeconds === undefined ? 'not yet' : since(revocations.loadedAtSeconds)
          }`,
    ...(revocations?.source && {
      'Its state': listStates[revocations.source.state],
      'Its URL': codes([revocations.source.url]),
    }),
    ...(revocations !== undefined && revocations.problems > 0 && { 'Its last change': refused(revocations.problems) }),
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

interface AttentionPoint {
  readonly text: string;
  /** The first ones, as in the log. */
  readonly problems?: readonly string[];
  /** A section of docs/runbooks.md, named like its alert. */
  readonly runbook?: string;
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
  const { draining, ready, reload, revocations, issuers, decisions } = facts;
  const list = revocations?.source;
  const lacksList = list !== undefined && list.state !== 'usable';
  const points: AttentionPoint[] = [];
  if (draining)
    points.push({ text: 'Draining: this instance is stopping. It answers calls until their connections close.' });
  else if (!ready && !lacksList)
    points.push({ text: 'Not ready: no issuer has had usable keys since start.', runbook: 'AccountAuthzNoKeys' });
  const ofIssuers = issuers.flatMap(issuer => issuerPoint(issuer, facts) ?? []);
  points.push(...ofIssuers.slice(0, maxIssuers));
  const others = ofIssuers.length - maxIssuers;
  if (others > 0)
    points.push({ text: `${formatCount(others)} more issuers need attention: /readyz lists all of them.` });
  if (reload?.lastResult === 'failure')
    points.push({
      text: 'The last change of the configuration was refused. The previous configuration stays in effect.',
      problems: reload.firstProblems,
      runbook: 'AccountAuthzReloadFailed',
    });
  if (lacksList)
    points.push({
      text: `${list.state === 'loading' ? 'There is no revocation list yet' : 'The revocation list was not confirmed for revocation.maxAgeSeconds and is not used'}: requests with good tokens get 503.`,
      ...(list.lastProblem !== undefined && { problems: [list.lastProblem] }),
      runbook: 'AccountAuthzRevocationListOld',
    });
  else if (revocations !== undefined && revocations.problems > 0)
    points.push({
      text: list
        ? 'The last fetch of the revocation list failed. The previous list stays in force.'
        : 'The last change of the revocation list was refused. The previous list stays in force.',
      problems: revocations.firstProblems,
      runbook: 'AccountAuthzRevocationListRefused',
    });
  const faults = decisions.get('internal') ?? 0;
  if (faults > 0)
    points.push({
      text: `Internal errors since start: ${formatCount(faults)}. The log has a line “fault” for each.`,
      runbook: 'AccountAuthzInternalFault',
    });
  return points;
}

const listStates = { loading: 'no list yet', usable: 'list usable', stale: 'list too old' } as const;

const keyStates = {
  loading: ['no keys yet', 'bad'],
  stale: ['keys too old', 'bad'],
  usable: ['keys usable', 'good'],
} as const;

function issuerPoint(status: KeyRingStatus, facts: AdminPageFacts): AttentionPoint | undefined {
  const issuer = printable(status.issuer, maxTextLength);
  if (status.state === 'loading')
    return { text: `No keys of ${issuer} yet: requests with its tokens get 503.`, runbook: 'AccountAuthzNoKeys' };
  if (status.state === 'stale') {
    const old = `were not confirmed for more than ${formatDuration(facts.maxAgeSeconds)} and are not used`;
    const text = `The keys of ${issuer} ${old}: requests with its tokens get 503.`;
    return { text, runbook: 'AccountAuthzKeySetOld' };
  }
  if (status.lastResult !== 'failure') return undefined;
  const text = `The last refresh for ${issuer} failed. Its keys stay in use for another ${formatRest(status, facts)}.`;
  return { text, runbook: 'AccountAuthzKeyRefreshFailing' };
}

function formatRest({ ageSeconds = 0 }: KeyRingStatus, { maxAgeSeconds }: AdminPageFacts): string {
  return formatDuration(maxAgeSeconds - ageSeconds);
}

const counting = new Intl.NumberFormat('en-GB');
/** 1,234 */
function formatCount(count: number): string {
  return counting.format(count);
}

const units = [['d', 86_400] as const, ['h', 3600] as const, ['min', 60] as const, ['s', 1] as const];

/** In at most two units: `4 min 12 s`. */
export function formatDuration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const [[unit, size] = ['s', 1], lower] = units.slice(units.findIndex(each => whole >= each[1]));
  const rest = lower === undefined ? '' : ` ${Math.floor((whole % size) / lower[1])} ${lower[0]}`;
  return `${Math.floor(whole / size)} ${unit}${rest}`;
}

/** `2026-11-21 12:00:03 UTC` */
function formatInstant(milliseconds: number): string {
  return `${new Date(milliseconds).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}
