// A page on another origin calls through Envoy in a real Chromium: CORS allows it with --cors-origin, and the page can read refusals;
// without the option, CORS blocks it.
import { createServer } from 'node:http';
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { envoyVersions } from '../../lab/envoy.ts';
import { renderedEnvoy } from '../../lab/envoy-bootstrap.ts';
import { exchange, headerValues, requestBytes } from '../../lab/raw-http.ts';
import { startBrowser } from '../support/browser.ts';
import { listen } from '../support/listen.ts';
import { useRunning } from '../support/use-running.ts';
import { useLab } from './lab.ts';

interface Seen {
  readonly status?: number;
  readonly body?: string;
  readonly requestId?: string | null;
  readonly challenge?: string | null;
  readonly error?: string;
}

const path = '/api/subscriptions/accounts/acct1';

describe('calls of a page on another origin', () => {
  const suite = useLab();
  const { lab } = suite;
  const browser = useRunning(async () => {
    const started = await startBrowser();
    return { newPage: () => started.newPage(), stop: () => started.close() };
  });
  const pages = useRunning(async () => {
    const server = createServer((_, response) => response.end('<!doctype html><title>page</title>'));
    return { origin: `http://127.0.0.1:${await listen(server)}`, stop: () => server.close() };
  });

  /** What a script of the page sees of its call. */
  async function call(
    page: Page,
    url: string,
    headers: Readonly<Record<string, string>>,
    method = 'GET',
  ): Promise<Seen> {
    const script = `fetch(${JSON.stringify(url)}, ${JSON.stringify({ method, headers })}).then(
      async answer => ({ status: answer.status, body: await answer.text(),
        requestId: answer.headers.get('x-request-id'), challenge: answer.headers.get('www-authenticate') }),
      error => ({ error: String(error) }))`;
    return page.evaluate(script);
  }

  async function open(from = pages.origin): Promise<Page> {
    const page = await browser.newPage();
    await page.goto(from);
    return page;
  }

  for (const version of envoyVersions) {
    describe(`Envoy ${version}`, () => {
      const permitting = useRunning(async () => {
        const origins = ['--cors-origin', pages.origin, '--cors-origin', 'https://app.example.com'];
        return suite.start({ version, bootstrap: await renderedEnvoy(...origins) });
      });
      let page: Page;
      const url = (target = path): string => `http://127.0.0.1:${permitting.port}${target}`;

      before(async () => {
        page = await open();
      });
      after(() => page?.close());

      it('are served with a token: Envoy answers the preflight, and the call is checked', async () => {
        const headers = { authorization: suite.owner, 'content-type': 'application/json', 'x-account-id': 'acct1' };
        expect(await call(page, url(), headers, 'PUT')).to.include({ status: 200 });
        expect(lab.upstream.requests.map(({ method }) => method)).to.deep.equal(['PUT']);
      });

      it('are refused with the problem document, the challenge and the request id, which the page can read', async () => {
        const missing = await call(page, url(), { 'content-type': 'application/json' });
        expect(missing).to.include({ status: 401, challenge: 'Bearer realm="account-authz"' });
        const foreign = await call(page, url('/api/subscriptions/accounts/acct2'), { authorization: suite.owner });
        expect(foreign.status).to.equal(403);
        for (const [{ body = '', requestId }, reason] of [
          [missing, 'token_missing'],
          [foreign, 'account_mismatch'],
        ] as const) {
          expect(JSON.parse(body)).to.include({ reason, request_id: requestId });
        }
        expect(lab.upstream.requests).to.deep.equal([]);
      });

      it('cannot read the 404 of Envoy for an unknown route', async () => {
        expect((await call(page, url('/elsewhere'), { authorization: suite.owner })).error).to.match(/Failed to fetch/);
      });

      it('fail with a request header that CORS does not allow', async () => {
        const seen = await call(page, url(), { authorization: suite.owner, 'x-mine': '1' });
        expect(seen.error).to.match(/Failed to fetch/);
        expect(lab.upstream.requests).to.deep.equal([]);
      });

      it('fail from an origin that is not allowed, and nothing reaches the service', async () => {
        const other = await open(pages.origin.replace('127.0.0.1', 'localhost'));
        expect((await call(other, url(), { authorization: suite.owner })).error).to.match(/Failed to fetch/);
        expect(lab.upstream.requests).to.deep.equal([]);
        await other.close();
      });

      it('get answers with Vary: Origin, for caches', async () => {
        const lines = [`Authorization: ${suite.owner}`, `Origin: ${pages.origin}`];
        const answer = await exchange(permitting.port, requestBytes('GET', path, lines));
        expect(headerValues(answer, 'access-control-allow-origin')).to.deep.equal([pages.origin]);
        expect(headerValues(answer, 'vary').join().toLowerCase()).to.include('origin');
        expect(headerValues(answer, 'access-control-allow-credentials')).to.deep.equal([]);
      });
    });
  }

  it('fail as shipped: the preflight is refused, and no answer has a CORS header', async () => {
    const envoy = await suite.start();
    const page = await open();
    const url = `http://127.0.0.1:${envoy.port}${path}`;
    expect((await call(page, url, { authorization: suite.owner })).error).to.match(/Failed to fetch/);
    const preflight = [`Origin: ${pages.origin}`, 'Access-Control-Request-Method: GET'];
    const answer = await exchange(envoy.port, requestBytes('OPTIONS', path, preflight));
    expect(answer.status).to.equal(401);
    expect(answer.headers.filter(([name]) => /^access-control-/i.test(name))).to.deep.equal([]);
    expect(lab.upstream.requests).to.deep.equal([]);
    await page.close();
    await envoy.stop();
  });
});
