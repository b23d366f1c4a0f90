// The admin page: what needs attention, issuers, reloads, latency, and the escaping of foreign text.
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { KeyRingStatus } from '../../src/keys/issuer-ring.ts';
import { renderAdminPage } from '../../src/service/admin-page.ts';
import type { AdminPageFacts } from '../../src/service/admin-page-facts.ts';
import { healthy, latency, unhealthy } from './admin-page-facts.ts';

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
  it('states that nothing needs attention when there is no problem', () => {
    expect(textOf(render())).to.contain('Nothing needs attention.').and.not.contain('Needs attention');
  });

  const stale: KeyRingStatus = { ...usable, state: 'stale', keys: 0, ageSeconds: 4000 };
  const loading: KeyRingStatus = { ...usable, state: 'loading', keys: 0, ageSeconds: undefined, kids: [] };
  const failing: KeyRingStatus = { ...usable, lastResult: 'failure', lastProblem: 'status 500', ageSeconds: 600 };
  const attention: readonly { name: string; changes: Partial<AdminPageFacts>; says: string }[] = [
    { name: 'draining', changes: { ready: false, draining: true }, says: 'Draining: this instance is stopping.' },
    { name: 'an unready instance', changes: { ready: false }, says: 'Not ready: no issuer has had usable keys' },
    {
      name: 'an issuer without keys',
      changes: { issuers: [usable, loading] },
      says: 'No keys of https://auth.example.com yet: requests with its tokens get 503.',
    },
    {
      name: 'stale keys',
      changes: { issuers: [stale] },
      says: 'The keys of https://auth.example.com were not confirmed for more than 1 h 0 min and are not used',
    },
    {
      name: 'a failed refresh and how long its keys stay in use',
      changes: { issuers: [failing] },
      says: 'The last refresh for https://auth.example.com failed. Its keys stay in use for another 50 min 0 s.',
    },
    {
      name: 'a refused reload',
      changes: {
        reload: { lastResult: 'failure', lastAtSeconds: 1, problems: 1, firstProblems: [], needsRestart: [] },
      },
      says: 'The last change of the configuration was refused. The previous configuration stays in effect.',
    },
    {
      name: 'internal errors',
      changes: { metrics: { ...healthy.metrics, checks: [{ decision: 'unavailable', reason: 'internal', count: 3 }] } },
      says: 'Internal errors since start: 3.',
    },
  ];
  for (const { name, changes, says } of attention) {
    it(`reports ${name}`, () => {
      const text = textOf(render(changes));
      expect(text).to.contain(says).and.contain('Needs attention').and.not.contain('Nothing needs attention');
    });
  }

  it('colours the section of what needs attention, and shows the problems and the runbook of each point', () => {
    const page = render({ reload: unhealthy.reload, revocations: unhealthy.revocations });
    expect(page).to.contain('<section class="wide alarm"');
    expect(render()).to.not.contain('class="wide alarm"');
    expect(textOf(page))
      .to.contain('config.yaml:12:5: issuers[0].audiences: must name at least one audience')
      .and.contain('revoked.jsonl:7:1: uid: must be text')
      .and.contain('Runbook: docs/runbooks.md#accountauthzreloadfailed')
      .and.contain('Runbook: docs/runbooks.md#accountauthzrevocationlistrefused');
  });
  it('names runbooks that exist', () => {
    const pages = [render(unhealthy), render({ ready: false, issuers: [stale, loading, failing] })];
    const named = pages.flatMap(page => textOf(page).match(/docs\/runbooks\.md#\w+/g) ?? []);
    expect(new Set(named).size).to.equal(6);
    const page = readFileSync(new URL('../../docs/runbooks.md', import.meta.url), 'utf8').toLowerCase();
    for (const name of named) expect(page).to.contain(`\n## ${name.split('#')[1]}\n`);
  });
  it('shows the routes, the roles, the scopes and the accounts of each issuer', () => {
    const text = textOf(render());
    expect(text).to.contain('/api/subscriptions/accounts/:account_id/* owner admin billing');
    expect(text).to.contain('/api/subscriptions/* all all');
    expect(text).to.contain('member GET HEAD').and.contain('orders:read GET HEAD');
    expect(text).to.contain('May speak for initech partner-*');
  });
  it('states that no scopes are configured, and counts the routes beyond the limit', () => {
    const routes = Array.from({ length: 1000 }, (_, i) => ({ path: `/r${i}/*` }));
    const text = textOf(render({ policy: { ...healthy.policy, routes, scopes: undefined } }));
    expect(text).to.contain('the claim is not looked at').and.contain('and 970 more');
  });
  it('shows no row of a time that no check took', () => {
    const metrics = { ...healthy.metrics, checks: [], latency: latency([3, 0, 1], 100) };
    expect(textOf(render({ metrics })))
      .to.contain('at most 50 µs 3')
      .and.not.contain('at most 100 µs');
  });

  const states = [
    { changes: {}, word: 'Ready' },
    { changes: { issuers: [usable, stale] }, word: 'Ready, with problems' },
    { changes: { ready: false }, word: 'Not ready' },
    { changes: { ready: false, draining: true }, word: 'Draining' },
  ];
  for (const { changes, word } of states) {
    it(`shows ${word} in the title and beside the heading`, () => {
      const page = render(changes);
      expect(page).to.contain(`<title>${word} &middot; account-authz</title>`);
      expect(textOf(page)).to.contain(`account-authz ${word} Version 0.1.0 Node v24.11.0 Up 3 d 4 h`);
    });
  }

  it('shows issuers with problems first, and counts those beyond the limit', () => {
    const named = (status: KeyRingStatus, i: number): KeyRingStatus => ({ ...status, issuer: `https://${i}.test` });
    const good = Array.from({ length: 900 }, (_, i) => named(usable, i));
    const text = textOf(render({ issuers: [...good, named(loading, 900)] }));
    expect(text).to.contain('No keys of https://900.test yet').and.contain('851 more: /readyz');
    expect(text.lastIndexOf('https://900.test')).to.be.below(text.indexOf('https://0.test'));
    const bad = Array.from({ length: 60 }, (_, i) => named(loading, i));
    expect(textOf(render({ issuers: [...good, ...bad] }))).to.contain('10 more issuers need attention');
  });

  it('names the problem of a failed refresh', () => {
    expect(textOf(render({ issuers: [failing] }))).to.contain('Last refresh failed: status 500');
  });
  it('states that the keys of an issuer were not fetched yet', () => {
    const text = textOf(render({ issuers: [{ ...loading, lastResult: undefined, lastProblem: undefined }] }));
    expect(text).to.contain('Confirmed not yet Last refresh none yet').and.contain('Key ids none');
  });

  const never = { lastResult: undefined, lastAtSeconds: undefined, problems: 0, firstProblems: [], needsRestart: [] };
  for (const reload of [undefined, never]) {
    it(`states that there was no reload since the start, with ${reload === undefined ? 'no' : 'an empty'} reload status`, () => {
      expect(textOf(render({ reload })))
        .to.contain('Last reload not reloaded since start')
        .and.not.contain('When');
    });
  }
  it('shows the number of entries and the age of the revocation list', () => {
    expect(textOf(render())).to.contain(
      'Revocation list Entries 1,284 In force for 40 min 0 s, since 2026-11-21 11:20:03 UTC Last change in force',
    );
    expect(textOf(render({ revocations: undefined }))).to.contain('Revocation list No list is configured.');
  });

  it('reports a refused revocation list, and that the old one stays in force', () => {
    const text = textOf(render({ revocations: unhealthy.revocations }));
    expect(text).to.contain('The last change of the revocation list was refused. The previous list stays in force.');
    expect(text).to.contain('Last change refused, with 101 problems in the log; the previous one stays in force');
  });

  it('shows the time of the last reload', () => {
    expect(textOf(render())).to.contain(
      'Last reload in effect When 2 h 18 min ago, 2026-11-21 09:41:10 UTC Needs a restart none',
    );
  });
  it('shows a refused reload with the number of its problems', () => {
    expect(textOf(render({ reload: unhealthy.reload }))).to.contain(
      'Last reload refused, with 1,234 problems in the log; the previous one stays in effect When 1 min 13 s ago',
    );
  });
  it('names the settings that need a restart', () => {
    const reload = {
      lastResult: 'success',
      lastAtSeconds: 1,
      problems: 0,
      firstProblems: [],
      needsRestart: ['listen', 'admin'],
    } as const;
    expect(textOf(render({ reload }))).to.contain('Needs a restart listen admin');
  });

  it('states that the token cache is turned off', () => {
    expect(textOf(render({ maxTokens: 0 }))).to.contain('Tokens turned off');
  });
  it('shows no ratio without look-ups and no latency without checks', () => {
    const metrics = { ...healthy.metrics, latency: latency([], 0), tokenCache: { entries: 0, hits: 0, misses: 0 } };
    const page = render({ metrics: { ...metrics, checks: [], refreshes: new Map() } });
    expect(textOf(page)).to.contain('Hits 0 Misses 0').and.contain('No check yet.');
    expect(page).to.not.match(/NaN|Infinity|undefined/);
  });

  it('derives quantiles from the bucket bounds', () => {
    const metrics = { ...healthy.metrics, latency: latency([50, 49, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], 0.2) };
    expect(textOf(render({ metrics }))).to.contain(
      'Half of the checks took at most 50 µs, 99 of 100 took at most 100 µs. Mean 2 ms.',
    );
  });
  it('shows a quantile in the unbounded bucket as above the last bound', () => {
    const metrics = { ...healthy.metrics, latency: latency([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 99], 100) };
    expect(textOf(render({ metrics }))).to.contain('Half of the checks took more than 500 ms');
  });
  it('draws a bar for each row with a count', () => {
    const metrics = { ...healthy.metrics, checks: [], latency: latency([3, 1], 100) };
    const bars = Array.from(render({ metrics }).matchAll(/<rect [^>]*width="([^"]*)"/g), match => match[1]);
    expect(bars).to.deep.equal(['75.00%', '25.00%']);
  });

  it('refreshes itself only with ?reload=10', () => {
    expect(render()).to.not.contain('http-equiv');
    expect(render({}, 'reload=1')).to.equal(render());
    expect(render({}, 'reload=10')).to.contain('<meta http-equiv="refresh" content="10">');
  });

  const hostile = "\"><script>alert(1)</script><img src=x onerror='alert(2)'>&amp;";
  it('L-003 shows foreign markup as text', () => {
    const issuer = { ...failing, issuer: hostile, lastProblem: hostile, kids: ['<b>k</b>'] };
    const page = render({
      issuers: [issuer],
      reload: { lastResult: 'failure', lastAtSeconds: 1, problems: 1, firstProblems: [], needsRestart: [hostile] },
      version: hostile,
    });
    expect(page).to.not.match(/<script|<img|<b>/);
    expect(textOf(page).split(hostile).length - 1, 'heading, attention, problem, setting, version').to.equal(5);
    expect(textOf(page)).to.contain('<b>k</b>');
  });
  it('L-003 escapes control characters and directional marks', () => {
    const text = 'a\u009b31m\u202eb\u2066c\u200bd\u0007';
    const issuer = { ...failing, issuer: text, lastProblem: text, kids: [text.slice(0, 6)] };
    const reload = {
      lastResult: 'success',
      lastAtSeconds: 1,
      problems: 0,
      firstProblems: [],
      needsRestart: [text],
    } as const;
    const page = render({ issuers: [issuer], reload });
    expect(page).to.not.match(/(?!\n)[\p{C}]/u);
    expect(textOf(page)).to.contain('a\\u{9b}31m\\u{202e}b\\u{2066}c\\u{200b}d\\u{7}');
  });
  it('L-003 truncates foreign text and long lists', () => {
    const long = 'x'.repeat(100_000);
    const issuer = { ...failing, issuer: long, lastProblem: long, kids: Array(1000).fill(long) };
    const page = render({
      issuers: Array(1000).fill(issuer),
      reload: {
        lastResult: 'failure',
        lastAtSeconds: 1,
        problems: 1000,
        firstProblems: [],
        needsRestart: Array(1000).fill(long),
      },
    });
    expect(page.length).to.be.below(200_000);
    const text = textOf(page);
    expect(text).to.contain('and 988 more').and.contain('950 more: /readyz');
  });
});
