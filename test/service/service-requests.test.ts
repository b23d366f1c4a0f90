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

  // Methods, paths and tokens are in test/authz and test/token: here is what a service could read beside them.
  const requests: readonly (readonly [name: string, parts: CheckRequestParts, answer: string])[] = [
    ['P-061 another host', { http: { host: 'other.test' } }, allowed],
    ['P-062 a mixed-case scheme, for another account', { path: other, http: { scheme: 'hTTps' } }, mismatch],
    ['R-002 a method of 10 KB', { method: 'A'.repeat(10_000) }, invalid],
    ['R-003 CONNECT', { method: 'CONNECT' }, roleForbidden],
    ['R-005 OPTIONS for another account', { method: 'OPTIONS', path: other }, mismatch],
    [
      'R-008 a websocket upgrade for another account',
      { path: other, headers: { connection: 'upgrade', upgrade: 'websocket' } },
      mismatch,
    ],
    ['R-013 an equal :path header', { path: mine, headers: { ':path': mine } }, allowed],
    ['R-013 a different :path header', { headers: { ':path': other } }, invalid],
    ['R-014 a body', { http: unread({ body: '{"account":"acct2"}' }) }, allowed],
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
    ...['x-access-token', 'proxy-authorization', 'x-forwarded-authorization', 'x-original-authorization'].map(
      name =>
        [
          `H-023 H-025 H-026 the token of another account in ${name}`,
          { headers: { [name]: 'Bearer x.y.z' } },
          allowed,
        ] as const,
    ),
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

  it('L-002 writes a token in the query or a cookie to no log, response or metrics, and takes none from there', async () => {
    const elsewhere = await lab.token({ claims: { uid: 'elsewhere' } });
    const parts = { path: `${mine}?access_token=${elsewhere}`, headers: { cookie: `t=${elsewhere}` } };
    const response = await lab.check(undefined, parts);
    expect(answerOf(response)).to.equal('401 token_missing');
    const metrics = await (await lab.admin('/metrics')).text();
    const written = [JSON.stringify(lab.log), JSON.stringify(response), metrics].join('\n');
    for (const part of [...elsewhere.split('.'), 'access_token']) expect(written).to.not.contain(part);
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
