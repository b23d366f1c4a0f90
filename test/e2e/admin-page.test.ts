// The admin page in a real browser: it shows the metrics, runs no script, and is readable in each colour scheme and width.
import axe from 'axe-core';
import { expect } from 'chai';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { type ServiceLab, startServiceLab } from '../../lab/service.ts';
import { signingKey } from '../../lab/signing-key.ts';
import { refusedConfig } from '../../src/config/verdict.ts';
import type { AdminPageFacts } from '../../src/service/admin-page-facts.ts';
import { type AdminServer, startAdminServer } from '../../src/service/admin-server.ts';
import { healthy, unhealthy } from '../service/admin-page-facts.ts';
import { picture, startBrowser } from '../support/browser.ts';

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

const phone = { width: 360, height: 740 };
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
    let lab: ServiceLab;
    const hostileKid = '<img src=x onerror=alert(1)>';
    before(async () => {
      lab = await startServiceLab({ keys: [await signingKey('k1'), await signingKey(hostileKid)] });
      const authorization = `Bearer ${await lab.token()}`;
      for (const path of ['/api/subscriptions/acct1', '/api/subscriptions/acct1/x', '/api/subscriptions/acct2'])
        await lab.check(authorization, { path });
      await lab.check(undefined);
      await lab.check('Bearer nonsense');
      await lab.check(authorization, { path: '/other' });
    });
    after(() => lab.stop());

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
      const cache = await page.getByRole('region', { name: 'Cache' }).innerText();
      expect(metrics).to.contain('token_cache_total{result="hit"} 2').and.contain('token_cache_total{result="miss"} 2');
      expect(cache.split(/\s+/).join(' ')).to.contain('Hits 2 (50%) Misses 2');
    });

    it('shows the buckets of the histogram', async () => {
      const metrics = await (await lab.admin('/metrics')).text();
      const cumulative = Array.from(
        metrics.matchAll(/^account_authz_check_duration_seconds_bucket\{.*\} (\d+)$/gm),
        each => Number(each[1]),
      );
      const { page } = await visit(lab.service.ports.admin);
      const rows = await page.getByRole('region', { name: 'Check duration' }).locator('tbody tr').evaluateAll(texts);
      const counts = rows.map(([, count]) => Number(count));
      const all = cumulative.map((count, index) => count - (cumulative[index - 1] ?? 0));
      expect(counts).to.deep.equal(all.filter(count => count > 0));
      expect(counts.reduce((sum, count) => sum + count, 0)).to.equal(6);
      expect(await page.getByRole('region', { name: 'Check duration' }).getByRole('img').count()).to.equal(
        counts.filter(count => count > 0).length,
      );
    });

    it('shows the issuer and its keys, hostile names as text', async () => {
      const { page, complaints, requested } = await visit(lab.service.ports.admin);
      const issuer = page.getByRole('article');
      expect(await issuer.getByRole('heading').innerText()).to.equal(lab.issuer.url);
      expect(await issuer.innerText()).to.match(/keys usable\s+Keys in use\s+2\s/);
      expect(await issuer.locator('code').allInnerTexts()).to.deep.equal(['k1', '<img src=x onerror=alert(1)>', '*']);
      expect(await page.locator('img, script, iframe').count()).to.equal(0);
      expect(complaints).to.deep.equal([]);
      expect(requested).to.have.lengthOf(1);
    });

    it('shows that a change of the configuration was refused', async () => {
      await lab.service.reload(refusedConfig(['one', 'two']));
      const { page } = await visit(lab.service.ports.admin);
      const configuration = await page.getByRole('region', { name: 'Configuration' }).innerText();
      expect(configuration).to.match(
        /Last reload\s+refused, with 2 problems in the log; the previous one stays in effect/,
      );
      expect(await page.getByRole('region', { name: 'Needs attention' }).innerText()).to.contain(
        'The last change of the configuration was refused.',
      );
    });

    it('links to the other pages', async () => {
      for (const name of ['/metrics', '/readyz', '/livez']) {
        const { page } = await visit(lab.service.ports.admin);
        const [response] = await Promise.all([
          page.waitForResponse(`**${name}`),
          page.getByRole('link', { name }).click(),
        ]);
        expect(response.status()).to.equal(200);
      }
    });

    it('refreshes itself while that is on', async () => {
      const { page, complaints } = await visit(lab.service.ports.admin);
      await page.getByRole('link', { name: 'Refresh it every 10 seconds' }).click();
      const refresh = page.locator('meta[http-equiv=refresh]');
      expect(await refresh.getAttribute('content')).to.equal('10');
      await page.getByRole('link', { name: 'Stop' }).click();
      expect(await refresh.count()).to.equal(0);
      expect(complaints).to.deep.equal([]);
    });
  });

  for (const [name, facts] of Object.entries({ healthy, unhealthy })) {
    describe(`when ${name}`, () => {
      let server: AdminServer;
      before(async () => {
        server = await serve(facts);
      });
      after(() => server.stop());

      for (const colorScheme of ['light', 'dark'] as const) {
        it(`renders in ${colorScheme} without a message of the browser, and loads nothing else`, async () => {
          const { page, complaints, requested } = await visit(server.port, { colorScheme });
          expect((await picture(page)).length, 'bytes of a picture with something in it').to.be.above(20_000);
          expect(complaints).to.deep.equal([]);
          expect(requested).to.deep.equal([`http://127.0.0.1:${server.port}/`]);
          expect(await page.evaluate(background)).to.equal(
            { light: 'rgb(245, 246, 248)', dark: 'rgb(18, 22, 27)' }[colorScheme],
          );
        });

        it(`has a contrast of at least 4.5 for each text in ${colorScheme}`, async () => {
          const { page } = await visit(server.port, { colorScheme });
          const measured = await page.evaluate<readonly Contrast[]>(contrasts);
          expect(measured).to.have.length.above(80);
          expect(measured.filter(({ ratio }) => !(ratio >= 4.5))).to.deep.equal([]);
        });

        it(`breaks no rule of accessibility in ${colorScheme}`, async () => {
          const { page } = await visit(server.port, {
            colorScheme,
            viewport: { light: phone, dark: desktop }[colorScheme],
          });
          await page.evaluate(axe.source);
          const { violations, passes } = await page.evaluate<axe.AxeResults>('axe.run()');
          expect(violations.map(({ id, nodes }) => [id, ...nodes.map(({ html }) => html)])).to.deep.equal([]);
          expect(passes.map(({ id }) => id)).to.include.members([
            'color-contrast',
            'document-title',
            'heading-order',
            'html-has-lang',
            'landmark-one-main',
            'page-has-heading-one',
            'region',
          ]);
        });
      }

      for (const width of [320, 360, 768, 1100]) {
        it(`fits into ${width} pixels without scrolling sideways`, async () => {
          const { page } = await visit(server.port, { viewport: { width, height: 740 } });
          expect(await page.evaluate(overflowing(width))).to.deep.equal([]);
        });
      }
    });
  }
});

/** The cell texts of each row. */
function texts(rows: readonly { readonly innerText: string }[]): string[][] {
  return rows.map(row => row.innerText.split('\t').map(cell => cell.trim()));
}

// Code for the page is a string: the compiler has no DOM types here.
const background = 'getComputedStyle(document.body).backgroundColor';

/** What overflows a page of this width: the text of each element, or `the page` itself. */
const overflowing = (width: number): string => `(() => {
  document.querySelectorAll('details').forEach(each => { each.open = true; });
  const overflowing = [...document.querySelectorAll('body *')].filter(each => each.getBoundingClientRect().right > ${width} + 0.5);
  const page = document.documentElement.scrollWidth > ${width} ? ['the page'] : [];
  return [...page, ...overflowing.map(each => each.textContent)];
})()`;

interface Contrast {
  readonly text: string;
  readonly ratio: number;
}

/** WCAG 2.2, "contrast ratio" and "relative luminance", for every visible element with text of its own. */
const contrasts = `(() => {
  document.querySelectorAll('details').forEach(each => { each.open = true; });
  const parse = colour => colour.match(/[\\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map(each => each / 255).map(each => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = element => {
    const [r, g, b, alpha = 1] = parse(getComputedStyle(element).backgroundColor);
    return alpha === 0 && element.parentElement ? behind(element.parentElement) : [r, g, b];
  };
  return [...document.querySelectorAll('body *')]
    .filter(each => each.getClientRects().length > 0)
    .filter(each => [...each.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim() !== ''))
    .map(each => {
      const style = getComputedStyle(each);
      const colour = each instanceof SVGElement ? style.fill : style.color;
      const [light, dark] = [luminance(parse(colour)), luminance(behind(each))].sort((a, b) => b - a);
      return { text: each.textContent, ratio: (light + 0.05) / (dark + 0.05) };
    });
})()`;
