// Kinds of requests through the whole path: methods, targets, and the places that identify a caller or an account.
import { expect } from 'chai';
import { envoyVersions } from '../../lab/envoy.ts';
import { exchange, headerValues, requestBytes } from '../../lab/raw-http.ts';
import { rawHttp2Exchange } from '../support/raw-http2.ts';
import { useRunning } from '../support/use-running.ts';
import { bearer, expectRefusal, http2Fields, onlyRequestOf, useLab } from './lab.ts';

const path = '/api/subscriptions/accounts/acct1/items';
const otherPath = '/api/subscriptions/accounts/acct2/items';
const all = '/api/subscriptions';

/** `OWNER` and `TOKEN` in a target or a line stand for the Authorization value of an owner, and for its token. */
type Request = readonly [method: string, target: string, ...lines: string[]];

const byOwner = 'Authorization: OWNER';

/** By `status reason`; without a reason Envoy itself refuses. */
const refused: Readonly<Record<string, Readonly<Record<string, Request>>>> = {
  '401 token_missing': {
    'GET without a token': ['GET', path],
    'DELETE without a token': ['DELETE', path],
    'OPTIONS without a token': ['OPTIONS', path],
    'a preflight as any other': ['OPTIONS', path, 'Origin: https://a.test', 'Access-Control-Request-Method: GET'],
    'H-021, H-023, H-025 a token in other places': [
      ...(['GET', `${path}?access_token=TOKEN`, 'Proxy-Authorization: OWNER'] as const),
      'Cookie: access_token=TOKEN',
      'X-Access-Token: TOKEN',
    ],
    'a POST before its body has arrived': ['POST', path, 'Content-Length: 1000'],
  },
  '403 role_forbidden': {
    'R-002, R-003 TRACE, which no role names': ['TRACE', path, byOwner],
    'R-002, R-003 PROPFIND, which no role names': ['PROPFIND', path, byOwner],
    'R-002, R-003 PURGE, which no role names': ['PURGE', path, byOwner],
  },
  '400': {
    'R-001 the method get': ['get', path, byOwner],
    'R-001 the method Get': ['Get', path, byOwner],
    'R-001 the method FOO': ['FOO', path, byOwner],
    'R-001 the method PRI': ['PRI', path, byOwner],
    'CONNECT with a path': ['CONNECT', path, byOwner],
    'an account header spelt with an underscore': ['GET', all, byOwner, 'x_account_id: acct2'],
    'a length beside Transfer-Encoding': ['POST', path, byOwner, 'Content-Length: 4', 'Transfer-Encoding: chunked'],
    'two lengths': ['POST', path, byOwner, 'Content-Length: 0', 'Content-Length: 5'],
  },
  '501': { 'an unknown transfer coding': ['POST', path, byOwner, 'Transfer-Encoding: xchunked'] },
  '404': { 'P-043 OPTIONS *': ['OPTIONS', '*', byOwner] },
  '403': { 'P-044 CONNECT': ['CONNECT', 'api.test:443', byOwner] },
  '431': { 'a token of 33 kB, without a check': ['GET', path, `Authorization: Bearer ${'a'.repeat(33_000)}`] },
  '400 request_invalid': {
    'H-010 two lines of Authorization': ['GET', path, byOwner, byOwner],
    'H-010 a second line that is not a bearer token': ['GET', path, byOwner, 'Authorization: Basic dTpw'],
    'H-010 a first line that is not a bearer token': ['GET', path, 'Authorization: Basic dTpw', byOwner],
    'H-014 two tokens in one line': ['GET', path, 'Authorization: OWNER, TOKEN'],
    'two lines of the account header': ['GET', all, byOwner, 'X-Account-Id: acct1', 'x-account-id: acct1'],
    'a list in the account header': ['GET', all, byOwner, 'x-account-id: acct1, acct2'],
    'an empty account header': ['GET', all, byOwner, 'x-account-id:'],
    'a query in UTF-7': ['GET', `${all}?+AGE-ccount_id=acct2`, byOwner, 'Content-Type: text/plain; charset=utf-7'],
    'a query in a quoted charset': ['GET', `${all}?a=b`, byOwner, 'Content-Type: text/plain; charset="utf-8"'],
    'a query in two charsets': ['GET', `${all}?a=b`, byOwner, 'Content-Type: a/b; charset=utf-8; charset=utf-7'],
  },
  '403 account_mismatch': {
    'another account in an absolute form': ['GET', `http://api.test${otherPath}`, byOwner],
    'another account in the path': ['GET', otherPath, byOwner],
    'another account in the header': ['GET', all, byOwner, 'X-Account-Id: acct2'],
    'another account in the query': ['GET', `${all}?account_id=acct2`, byOwner],
  },
};

describe('requests through Envoy', () => {
  const suite = useLab();
  const { expectNothingReached } = suite;

  const filled = (text: string): string =>
    text.replaceAll('OWNER', suite.owner).replaceAll('TOKEN', suite.owner.slice('Bearer '.length));

  for (const version of envoyVersions) {
    describe(`Envoy ${version}`, () => {
      const envoy = useRunning(() => suite.start({ version }));

      const send = ([method, target, ...lines]: Request, body = '') =>
        exchange(envoy.port, requestBytes(method, filled(target), lines.map(filled), body));

      for (const [answer, requests] of Object.entries(refused)) {
        const [status, reason] = answer.split(' ');
        for (const [name, request] of Object.entries(requests)) {
          it(`answers ${answer} to ${name}`, async () => {
            const refusal = await send(request, request.includes('Transfer-Encoding: chunked') ? '0\r\n\r\n' : '');
            if (reason === undefined) expect(refusal.status).to.equal(Number(status));
            else expectRefusal(refusal, Number(status), reason);
            expectNothingReached();
          });
        }
      }

      for (const method of ['GET', 'DELETE', 'OPTIONS', 'POST', 'PUT', 'PATCH']) {
        it(`passes ${method} with a token, and its body unchanged`, async () => {
          const body = method.startsWith('P') ? '{"plan":"\xe9"}' : '';
          expect((await send([method, path, byOwner], body)).status).to.equal(200);
          expect(onlyRequestOf(suite.lab.upstream)).to.include({ method, path, body });
        });
      }

      it('answers HEAD without a body, refused or not', async () => {
        expect(await send(['HEAD', path, byOwner])).to.include({ status: 200, body: '' });
        expect(onlyRequestOf(suite.lab.upstream).method).to.equal('HEAD');
        const refused = await send(['HEAD', path]);
        expect(refused).to.include({ status: 401, body: '' });
        expect(headerValues(refused, 'www-authenticate')).to.deep.equal(['Bearer realm="account-authz"']);
      });

      it('refuses a method that the role does not have', async () => {
        const byMember = `Authorization: ${await bearer({ role: 'member' })}`;
        expect((await send(['GET', all, byMember])).status).to.equal(200);
        suite.lab.upstream.clear();
        expectRefusal(await send(['POST', all, byMember]), 403, 'role_forbidden');
        expectNothingReached();
      });

      it('takes path and host from an absolute form, not from the Host header', async () => {
        await send(['GET', `http://other.test${path}`, byOwner]);
        const request = onlyRequestOf(suite.lab.upstream);
        expect(request.path).to.equal(path);
        expect(headerValues(request, 'host')).to.deep.equal(['other.test']);
      });

      it('P-044 refuses CONNECT over HTTP/2', async () => {
        const target = [':authority', 'api.test:443'] as const;
        const fields = [[':method', 'CONNECT'], target, ['authorization', suite.owner]] as const;
        expect((await rawHttp2Exchange(envoy.port, fields)).status).to.equal(403);
        expectNothingReached();
      });

      it('R-019 passes nothing that follows a refused CONNECT', async () => {
        const smuggled = requestBytes('GET', path);
        const answer = await exchange(envoy.port, `${requestBytes('CONNECT', 'api.test:443')}${smuggled}`);
        expect(answer.status).to.equal(403);
        expectNothingReached();
      });

      it('H-010 refuses two lines of Authorization over HTTP/2', async () => {
        const fields = [...http2Fields(path), ['authorization', suite.owner], ['authorization', suite.owner]] as const;
        const answer = await rawHttp2Exchange(envoy.port, fields);
        expect(answer.status).to.equal(400);
        expect(JSON.parse(answer.body)).to.include({ reason: 'request_invalid' });
        expectNothingReached();
      });

      it('H-027 takes no token from a trailer', async () => {
        const trailer = `0\r\nAuthorization: ${suite.owner}\r\n\r\n`;
        const request = ['POST', path, 'Transfer-Encoding: chunked', 'Trailer: authorization'] as const;
        expectRefusal(await send(request, trailer), 401, 'token_missing');
        expectNothingReached();
      });

      it('passes an account header that names the account of the token, and a query in UTF-8', async () => {
        const lines = ['X-Account-Id: acct1', 'Content-Type: application/json; charset=UTF-8'];
        expect((await send(['GET', `${all}?account_id=acct1`, byOwner, ...lines])).status).to.equal(200);
        expect(headerValues(onlyRequestOf(suite.lab.upstream), 'x-account-id')).to.deep.equal(['acct1']);
      });

      it('refuses HTTP/1.0', async () => {
        const bytes = requestBytes('GET', path, [filled(byOwner)]).replace('HTTP/1.1', 'HTTP/1.0');
        expect((await exchange(envoy.port, bytes)).status).to.equal(426);
        expectNothingReached();
      });
    });
  }
});
