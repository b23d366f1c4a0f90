// The admin page: what needs attention, issuers, policy, reloads, and the escaping of foreign text.
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { KeyRingStatus } from '../../src/keys/key-ring.ts';
import { type AdminPageFacts, formatDuration, renderAdminPage } from '../../src/service/admin-page.ts';
import { healthy, unhealthy } from './admin-page-facts.ts';

const [usable] = healthy.issuers as readonly [KeyRingStatus];

function render(changes: Partial<AdminPageFacts> = {}, query = ''): string {
  return renderAdminPage({ ...healthy, ...changes }, query);
}

/** The visible text: no markup, entities decoded, on one line. */
function textOf(page: string): string {
  return page
    .slice(page.indexOf('</style>'))
    .replace(/<[^>]*>/g, ' ')
    .replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))
    .replaceAll('&middot; ', '')
    .replace(/\s+/g, ' ');
}

describe('admin page', () => {
  const stale: KeyRingStatus = { ...usable, state: 'stale', keys: 0, ageSeconds: 4000 };
  const loading: KeyRingStatus = { ...usable, state: 'loading', keys: 0, ageSeconds: undefined, kids: [] };
  const failing: KeyRingStatus = { ...usable, lastResult: 'failure', lastProblem: 'status 500', ageSeconds: 600 };
  const [lastResult, lastAtSeconds] = [undefined, undefined];
  const noReload = { lastResult, lastAtSeconds, problems: 0, firstProblems: [], needsRestart: [] };
  const rows: readonly (readonly [says: string, changes: Partial<AdminPageFacts>, word?: string])[] = [
    ['Nothing needs attention.', {}, 'Ready'],
    ['Draining: this instance is stopping.', { ready: false, draining: true }, 'Draining'],
    ['Not ready: no issuer has had usable keys since start.', { ready: false }, 'Not ready'],
    ['No keys of https://auth.example.com yet: requests with its tokens get 503.', { issuers: [usable, loading] }],
    [
      'The keys of https://auth.example.com were not confirmed for more than 1 h 0 min and are not used',
      { issuers: [stale] },
      'Ready, with problems',
    ],
    ['failed. Its keys stay in use for another 50 min 0 s.', { issuers: [failing] }],
    ['Last refresh failed: status 500', { issuers: [failing] }],
    ['Confirmed not yet', { issuers: [loading] }],
    ['The last change of the configuration was refused.', { reload: { ...noReload, lastResult: 'failure' } }],
    ['Internal errors since start: 3.', { decisions: new Map([['internal', 3]]) }],
    ['Last reload not reloaded since start', { reload: noReload }],
    ['Last reload in effect When 2 h 18 min ago, 2026-11-21 09:41:10 UTC Needs a restart none', {}],
    ['refused, with 1,234 problems in the log; the previous one stays in effect', { reload: unhealthy.reload }],
    ['Revocation list 1,284 entries, loaded 40 min 0 s ago, 2026-11-21 11:20:03 UTC', {}],
    ['Revocation list not configured', { revocations: undefined }],
    ['allowed 1,482,203 request_invalid 400 0', {}],
    ['The last change of the revocation list was refused.', { revocations: unhealthy.revocations }],
    ['/api/subscriptions/* owner * admin GET HEAD POST PUT PATCH DELETE member GET HEAD POST', {}],
    ['/api/subscriptions/accounts/:account_id/* owner * admin GET HEAD POST PUT PATCH DELETE billing *', {}],
    ['admin GET HEAD POST PUT PATCH DELETE not looked at', { policy: { ...healthy.policy, scopes: undefined } }],
    ['and 970 more', { policy: { ...healthy.policy, routes: Array(1000).fill({ path: '/r' }) } }],
  ];
  for (const [says, changes, word] of rows) {
    it(`says "${says}"${word === undefined ? '' : ` and ${word}`}`, () => {
      const page = render(changes);
      expect(textOf(page)).to.contain(says);
      expect(page).to.not.match(/NaN|Infinity|undefined/);
      if (word === undefined) return;
      expect(page).to.contain(`<title>${word} &middot; account-authz</title>`);
      expect(textOf(page)).to.contain(`account-authz ${word} Version 0.1.0 Node v24.11.0 Up 3 d 4 h`);
    });
  }

  it('shows how many accounts an issuer may speak for, and none of their names', () => {
    const text = textOf(render());
    expect(text).to.contain('May speak for all accounts').and.contain('May speak for 2 entries of accounts');
    expect(text).to.not.match(/initech|partner-\*/);
  });

  it('shows the problems of each point, and links to its runbook, which exists', () => {
    const pages = [render(unhealthy), render({ ready: false, issuers: [stale, loading, failing] })];
    expect(textOf(pages.join('')))
      .to.contain('issuers[0].audiences: must name at least')
      .and.contain('uid: must be text');
    const named = pages.flatMap(page =>
      Array.from(page.matchAll(/href="runbooks.md#:~:text=([^"]*)"/g), each => each[1]),
    );
    expect(new Set(named).size).to.equal(6);
    const headings = readFileSync(new URL('../../docs/runbooks.md', import.meta.url), 'utf8').split('\n');
    for (const name of named) expect(headings).to.include(decodeURIComponent(name ?? ''));
  });

  it('shows issuers with problems first, and counts those beyond the limit', () => {
    const named = (status: KeyRingStatus, i: number): KeyRingStatus => ({ ...status, issuer: `https://${i}.test` });
    const good = Array.from({ length: 900 }, (_, i) => named(usable, i));
    const text = textOf(render({ issuers: [...good, named(loading, 900)] }));
    expect(text).to.contain('No keys of https://900.test yet').and.contain('851 more: /readyz');
    expect(text.lastIndexOf('https://900.test')).to.be.below(text.indexOf('https://0.test'));
    const bad = Array.from({ length: 60 }, (_, i) => named(loading, i));
    expect(textOf(render({ issuers: [...good, ...bad] }))).to.contain('10 more issuers need attention');
  });

  it('refreshes itself only with ?reload=10', () => {
    expect(render({}, 'reload=1')).to.equal(render()).and.not.contain('http-equiv');
    expect(render({}, 'reload=10')).to.contain('<meta http-equiv="refresh" content="10">');
  });

  it('L-003 shows foreign markup, control characters and directional marks as text, and truncates it', () => {
    const hostile = "\"><script>alert(1)</script><img src=x onerror='alert(2)'>&amp;";
    const hidden = 'a\u009b31m\u202eb\u2066c\u200bd\u0007';
    for (const [text, shown] of [
      [hostile, hostile],
      [hidden, 'a\\u{9b}31m\\u{202e}b\\u{2066}c\\u{200b}d\\u{7}'],
      ['x'.repeat(100_000), `${'x'.repeat(299)}…`],
    ] as const) {
      const page = render({
        issuers: Array(1000).fill({ ...failing, issuer: text, lastProblem: text, kids: Array(1000).fill(text) }),
        reload: { ...noReload, lastResult: 'failure', firstProblems: [text], needsRestart: Array(1000).fill(text) },
      });
      expect(page).to.not.match(/<script|<img|(?!\n)\p{C}/u);
      expect(page.length).to.be.below(250_000);
      // In attention (an issuer, the reload), and of 50 issuers the heading and the problem.
      expect(textOf(page).split(shown).length - 1).to.be.at.least(150);
    }
  });

  for (const [written, expected] of [
    [formatDuration(-5), '0 s'],
    [formatDuration(59.9), '59 s'],
    [formatDuration(60), '1 min 0 s'],
    [formatDuration(3601), '1 h 0 min'],
    [formatDuration(400 * 86_400 + 4 * 3600), '400 d 4 h'],
  ] as const) {
    it(`writes ${expected}`, () => {
      expect(written).to.equal(expected);
    });
  }
});
