// Requests with a valid token that a running service must refuse or answer alike.
import { expect } from 'chai';
import { type CheckRequestParts, checkRequest } from '../../lab/check-request.ts';
import { type ServiceLab, startServiceLab } from '../../lab/service.ts';
import { signingKey } from '../../lab/signing-key.ts';
import type { CheckRequestMessage, HttpRequestMessage } from '../../src/envoy/protocol.ts';
import { allowed, answerOf, invalid, mine } from './status-and-reason.ts';

const other = '/api/subscriptions/acct2';

const mismatch = '403 account_mismatch';

const roleForbidden = '403 role_forbidden';

const unknown = '404 route_unknown';

/** Fields that Envoy sends and account-authz does not read. */
const unread = (fields: object): Partial<HttpRequestMessage> => fields;

describe('service with a valid token', () => {
  let lab: ServiceLab;
  let token: string;
  before(async () => {
    lab = await startServiceLab({ config: { apps: ['web'] } });
    token = await lab.token();
  });
  after(() => lab.stop());

  // One of a kind: test/authz/path.test.ts has the grammar, test/e2e/paths.test.ts the targets of these ids behind Envoy.
  const paths: readonly (readonly [id: string, path: string, answer: string])[] = [
    ['P-001', mine, allowed],
    ['P-002', other, mismatch],
    ['P-005', `${mine}/`, allowed],
    ['P-006', '/api/subscriptions-old/acct1', unknown],
    ['P-007', '/api/Subscriptions/acct1', invalid],
    ['P-009', `${mine}/../acct2`, invalid],
    ['P-010', `${other}/../acct1`, invalid],
    ['P-018', '/api//subscriptions/acct1', invalid],
    ['P-020', `${mine};x/items`, invalid],
    ['P-021', `${mine}/..;x/acct2`, invalid],
    ['P-026', `${mine}?account=acct1&account=acct2`, allowed],
    ['P-028', `${mine}?`, allowed],
    ['P-028', `${mine}?a#b`, invalid],
    ['P-031', `${mine}\r\nX: y`, invalid],
    ['P-037', `${mine}\ufffd\ufffd`, invalid],
    ['P-039', '/api/subscriptions/\u0430cct1', invalid],
    ['P-041', `http://evil.test${other}`, invalid],
    ['P-044', '', invalid],
    ['P-046', `${other}${mine}`, mismatch],
    ['P-053', `${mine}${'/a'.repeat(5000)}`, invalid],
    ['P-054', `/api/subscriptions/${'a'.repeat(2000)}!`, invalid],
    ['P-057', '/api/subscriptions/%61cct1', invalid],
  ];
  for (const [id, path, answer] of paths) {
    const name = JSON.stringify(path);
    it(`${id} answers ${name.length > 60 ? `${name.slice(0, 60)}… (${path.length})` : name} with ${answer}`, async () => {
      for (const raw of [false, true]) {
        expect(answerOf(await lab.check(`Bearer ${token}`, { path, raw })), `raw: ${raw}`).to.equal(answer);
      }
    });
  }

  const requests: readonly (readonly [name: string, parts: CheckRequestParts, answer: string])[] = [
    ['P-061 another host', { http: { host: 'other.test' } }, allowed],
    ['P-061 another host, for another account', { path: other, http: { host: 'other.test' } }, mismatch],
    ['P-062 a mixed-case scheme, for another account', { path: other, http: { scheme: 'hTTps' } }, mismatch],
    ['R-001 the method get', { method: 'get' }, invalid],
    ['R-001 the method Get', { method: 'Get' }, invalid],
    ['R-002 the method FOO', { method: 'FOO' }, roleForbidden],
    ['R-002 no method', { method: '' }, invalid],
    ['R-002 a method of 10 KB', { method: 'A'.repeat(10_000) }, invalid],
    ['R-003 TRACE', { method: 'TRACE' }, roleForbidden],
    ['R-003 CONNECT', { method: 'CONNECT' }, roleForbidden],
    ['R-003 PRI', { method: 'PRI' }, roleForbidden],
    ['R-005 OPTIONS for another account', { method: 'OPTIONS', path: other }, mismatch],
    ['R-005 OPTIONS for the account', { method: 'OPTIONS' }, allowed],
    [
      'R-008 a websocket upgrade for another account',
      { path: other, headers: { connection: 'upgrade', upgrade: 'websocket' } },
      mismatch,
    ],
    ['R-013 an equal :path header', { path: mine, headers: { ':path': mine } }, allowed],
    ['R-013 a different :path header', { headers: { ':path': other } }, invalid],
    ['R-014 a body', { http: unread({ body: '{"account":"acct2"}' }) }, allowed],
    ['R-018 an unknown protocol', { http: { protocol: 'x' } }, allowed],
    ['O-012 x-envoy-original-path', { headers: { 'x-envoy-original-path': other } }, allowed],
    [
      "O-012 x-envoy-original-path with the caller's account, on the path of another",
      { path: other, headers: { 'x-envoy-original-path': mine, 'x-envoy-internal': 'true' } },
      mismatch,
    ],
    ...['x-forwarded-uri', 'x-original-url', 'x-rewrite-url', 'x-forwarded-prefix'].map(
      name => [`O-013 ${name}`, { path: other, headers: { [name]: mine } }, mismatch] as const,
    ),
    ...['x-forwarded-host', 'x-forwarded-proto', 'forwarded'].map(
      name => [`O-014 ${name}`, { path: other, headers: { [name]: 'for=127.0.0.1' } }, mismatch] as const,
    ),
    ...['x-http-method-override', 'x-method-override', 'x-http-method'].map(
      name => [`O-015 ${name}`, { method: 'TRACE', headers: { [name]: 'GET' } }, roleForbidden] as const,
    ),
    ['O-015 _method in the query', { method: 'TRACE', path: `${mine}?_method=GET` }, invalid],
    ['O-015 a parameter named method', { path: `${mine}?method=DELETE` }, allowed],
    ['H-034 256 headers with cookie and Authorization', { headers: manyHeaders(254) }, allowed],
    ['H-034 257 headers with cookie and Authorization', { headers: manyHeaders(255) }, invalid],
  ];
  for (const [name, parts, answer] of requests) {
    it(`answers ${name} with ${answer}`, async () => {
      for (const raw of [false, true]) {
        expect(answerOf(await lab.check(`Bearer ${token}`, { ...parts, raw })), `raw: ${raw}`).to.equal(answer);
      }
    });
  }

  it('P-059 ignores context_extensions', async () => {
    const message = checkRequest({ headers: { authorization: `Bearer ${token}` }, path: other });
    const attributes = { ...message.attributes, context_extensions: { path: mine, account: 'acct2', allow: 'true' } };
    expect(answerOf(await lab.client.check({ attributes } as CheckRequestMessage))).to.equal(mismatch);
  });

  it('R-017 ignores source and destination, and does not need them', async () => {
    const message = checkRequest({ headers: { authorization: `Bearer ${token}` } });
    const peer = { address: { socket_address: { address: '127.0.0.1', port_value: 1 } }, principal: 'spiffe://x' };
    const attributes = { ...message.attributes, source: peer, destination: peer };
    expect(answerOf(await lab.client.check(message))).to.equal(allowed);
    expect(answerOf(await lab.client.check({ attributes } as unknown as CheckRequestMessage))).to.equal(allowed);
  });

  it('C-073 allows one token 100 times', async () => {
    const answers = await Promise.all(Array.from({ length: 100 }, () => lab.check(`Bearer ${token}`)));
    expect(new Set(answers.map(answerOf))).to.deep.equal(new Set([allowed]));
  });

  it('C-075 refuses an application that is not listed', async () => {
    expect(answerOf(await lab.check(`Bearer ${await lab.token({ claims: { app: 'cli' } })}`))).to.equal(
      '403 app_forbidden',
    );
  });

  it("L-010 answers identically for an unknown account and for someone else's", async () => {
    const headers = { 'x-request-id': 'the-same' };
    const [anotherAccount, unknownAccount] = await Promise.all(
      ['acct2', 'no-such-account'].map(account =>
        lab.check(`Bearer ${token}`, { headers, path: `/api/subscriptions/${account}` }),
      ),
    );
    expect(anotherAccount?.denied_response?.status.code).to.equal(403);
    expect(unknownAccount).to.deep.equal(anotherAccount);
  });

  it('L-006 uses only metric labels from closed sets, whatever the request contains', async () => {
    const stranger = { ...(await signingKey('other')), kid: 'planted-kid' };
    await lab.check(`Bearer ${await lab.token({ key: stranger, claims: { iss: 'https://planted.test' } })}`);
    await lab.check(`Bearer ${await lab.token({ claims: { uid: 'planted-uid', acc: 'planted-acc' } })}`);
    await lab.check(`Bearer ${token}`, {
      path: '/planted/path',
      method: 'PLANTED',
      headers: { 'x-request-id': 'planted-id' },
    });
    const text = await (await lab.admin('/metrics')).text();
    const labels = Array.from(text.matchAll(/^account_authz_\w+\{([^}]*)\}/gm), ([, each = '']) => each);
    const values = labels.flatMap(each => Array.from(each.matchAll(/(\w+)="([^"]*)"/g), ([pair]) => pair));
    expect(values).to.include('decision="allow"');
    const closed =
      /^(?:decision="(?:allow|deny|unavailable)"|result="(?:success|failure|hit|miss)"|le="[\d.+Inf]+"|(?:version|node|reason)="[\w.-]+")$/;
    expect(values.filter(pair => !closed.test(pair) && pair !== `issuer="${lab.issuer.url}"`)).to.deep.equal([]);
    expect(text).to.not.match(/planted/i);
  });
});

function manyHeaders(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`x-h-${i}`, 'a'.repeat(44)]));
}
