// The admin page in a real browser: it shows the metrics, runs no script, and is readable in each colour scheme and width.
import axe from 'axe-core';
import { expect } from 'chai';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { startServiceLab } from '../../lab/service.ts';
import { signingKey } from '../../lab/signing-key.ts';
import type { AdminPageFacts } from '../../src/service/admin-page.ts';
import { type AdminServer, startAdminServer } from '../../src/service/admin-server.ts';
import { healthy, unhealthy } from '../service/admin-page-facts.ts';
import { picture, startBrowser } from '../support/browser.ts';
import { useRunning } from '../support/use-running.ts';

interface Visit {
  readonly page: Page;
  /** Messages of the browser: errors, blocked styles and scripts, and everything on its console. */
  readonly complaints: readonly string[];
  readonly requested: readonly string[];
}

function serve(facts: AdminPageFacts): Promise<AdminServer> {
  const pages = {
    readiness: () => ({ ready: true, body: {} }),
    metrics: async () => ({ contentType: 'text/plain', text: '' }),
    facts: async () => facts,
  };
  return startAdminServer({ host: '127.0.0.1', port: 0 }, pages);
}

const phone = { width: 320, height: 740 };
const desktop = { width: 1100, height: 900 };

describe('admin page in a browser', () => {
  let browser: Browser;
  const visits: Page[] = [];

  async function visit(port: number, options: BrowserContextOptions = {}, path = '/'): Promise<Visit> {
    const page = await browser.newPage({ viewport: desktop, ...options });
    visits.push(page);
    const complaints: string[] = [];
    const requested: string[] = [];
    page.on('console', message => complaints.push(message.text()));
    page.on('pageerror', error => complaints.push(error.message));
    page.on('request', request => requested.push(request.url()));
    const response = await page.goto(`http://127.0.0.1:${port}${path}`);
    expect(response?.status()).to.equal(200);
    return { page, complaints, requested };
  }

  before(async () => {
    // The first run installs it.
    browser = await startBrowser();
  });
  afterEach(async () => {
    await Promise.all(visits.splice(0).map(page => page.close()));
  });
  after(() => browser.close());

  describe('of a running service', () => {
    const hostileKid = '<img src=x onerror=alert(1)>';
    const lab = useRunning(async () => {
      const lab = await startServiceLab({ keys: [await signingKey('k1'), await signingKey(hostileKid)] });
      const authorization = `Bearer ${await lab.token()}`;
      for (const path of ['/api/subscriptions/acct1', '/api/subscriptions/acct1/x', '/api/subscriptions/acct2'])
        await lab.check(authorization, { path });
      await lab.check(undefined);
      await lab.check('Bearer nonsense');
      await lab.check(authorization, { path: '/other' });
      return lab;
    });

    it('shows the numbers of /metrics', async () => {
      const metrics = await (await lab.admin('/metrics')).text();
      const { page } = await visit(lab.service.ports.admin);
      const counted = Array.from(
        metrics.matchAll(/^account_authz_checks_total\{decision="\w+",reason="(\w+)"\} (\d+)$/gm),
        ([, reason = '', count = '']) => [reason, count] as const,
      );
      const decisions = page.getByRole('region', { name: 'Decisions since start' });
      const rows = await decisions.locator('tbody tr').evaluateAll(texts);
      const shown = rows.map(([name = '', count = '']) => [name.split(' ')[0], count] as const);
      expect(shown).to.have.deep.members(counted);
      expect(counted.filter(([, count]) => count !== '0')).to.have.deep.members([
        ['allowed', '2'],
        ['account_mismatch', '1'],
        ['token_missing', '1'],
        ['token_invalid', '1'],
        ['route_unknown', '1'],
      ]);
      expect(await decisions.locator('tfoot').innerText()).to.contain('6');
    });

    it('shows the issuer and its keys, hostile names as text', async () => {
      const { page, complaints, requested } = await visit(lab.service.ports.admin);
      const issuer = page.getByRole('article');
      expect(await issuer.getByRole('heading').innerText()).to.equal(lab.issuer.url);
      expect(await issuer.innerText()).to.match(/keys usable\s+Keys in use\s+2\s/);
      expect(await issuer.locator('code').allInnerTexts()).to.deep.equal(['k1', hostileKid]);
      expect(await page.locator('img, script, iframe').count()).to.equal(0);
      expect(complaints).to.deep.equal([]);
      expect(requested).to.have.lengthOf(1);
    });

    it('links to the other pages, and refreshes itself while that is on', async () => {
      const { page, complaints } = await visit(lab.service.ports.admin);
      await page.getByRole('link', { name: 'Refresh it every 10 seconds' }).click();
      const refresh = page.locator('meta[http-equiv=refresh]');
      expect(await refresh.getAttribute('content')).to.equal('10');
      await page.getByRole('link', { name: 'Stop' }).click();
      expect(await refresh.count()).to.equal(0);
      expect(complaints).to.deep.equal([]);
      const linked = page.waitForResponse('**/readyz');
      await page.getByRole('link', { name: '/readyz' }).click();
      expect((await linked).status()).to.equal(200);
    });
  });

  for (const [name, facts] of Object.entries({ healthy, unhealthy })) {
    describe(`when ${name}`, () => {
      const server = useRunning(() => serve(facts));

      for (const [colorScheme, viewport] of [
        ['light', phone],
        ['dark', desktop],
      ] as const) {
        it(`is complete and breaks no rule of accessibility in ${colorScheme}, and loads nothing else`, async () => {
          const { page, complaints, requested } = await visit(server.port, { colorScheme, viewport });
          expect((await picture(page)).length, 'bytes of a picture with something in it').to.be.above(20_000);
          expect(complaints).to.deep.equal([]);
          expect(requested).to.deep.equal([`http://127.0.0.1:${server.port}/`]);
          expect(await page.evaluate(overflowing(viewport.width))).to.deep.equal([]);
          await page.evaluate(axe.source);
          const { violations, passes } = await page.evaluate<axe.AxeResults>('axe.run()');
          expect(violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)])).to.deep.equal([]);
          expect(passes.map(({ id }) => id)).to.include('color-contrast');
        });
      }
    });
  }

  it('leads to the runbook of what needs attention', async () => {
    const server = await serve(unhealthy);
    const { page } = await visit(server.port);
    await page.getByRole('link', { name: 'Runbook AccountAuthzReloadFailed' }).click();
    await page.waitForURL('**/runbooks.md**');
    expect(await page.locator('body').innerText()).to.contain('## AccountAuthzReloadFailed');
    await server.stop();
  });
});

/** The cell texts of each row. */
function texts(rows: readonly { readonly innerText: string }[]): string[][] {
  return rows.map(row => row.innerText.split('\t').map(cell => cell.trim()));
}

/** Code for the page is a string, because the compiler has no DOM types here. */
const overflowing = (width: number): string => `[...document.querySelectorAll('html, body *')]
  .filter(each => each.getBoundingClientRect().right > ${width} + 0.5)
  .map(each => each.textContent)`;
