// The service as a whole, in process: checks, gRPC limits, log, admin, health.
import { connect as connectSocket } from 'node:net';
import { status } from '@grpc/grpc-js';
import { expect } from 'chai';
import { checkRequest } from '../../lab/check-request.ts';
import { secrets } from '../../lab/secrets.ts';
import { reasonOf, type ServiceLab, startServiceLab } from '../../lab/service.ts';
import { signingKey } from '../../lab/signing-key.ts';
import { uid } from '../../lab/token.ts';
import { servingStatus } from '../../src/envoy/protocol.ts';

describe('service', () => {
  let lab: ServiceLab;
  before(async () => {
    lab = await startServiceLab({ config: { account: { headers: ['x-account-id'] } } });
  });
  after(() => lab.stop());
  it('decides as agentgateway asks: no pseudo-headers in the map, lines joined by a comma and a space, the path as it was sent', async () => {
    const ask = async (path: string, headers: Readonly<Record<string, string>>): Promise<string> => {
      const authorization = `Bearer ${await lab.token()}`;
      const { attributes } = checkRequest({ path, http: { headers: { authorization, ...headers } } });
      return reasonOf(await lab.client.check({ attributes }));
    };
    expect(await ask('/api/subscriptions/acct1', { 'x-account-id': 'acct1' })).to.equal('allowed');
    expect(await ask('/api/subscriptions/acct1', { 'x-account-id': 'acct1, acct2' })).to.equal('request_invalid');
    expect(await ask('/api/subscriptions/acct1', { authorization: 'Bearer a, Bearer b' })).to.equal('request_invalid');
    for (const path of ['/api/subscriptions/acct2/../acct1', '/api//subscriptions/acct1', '/api/subscriptions%2Facct1'])
      expect(await ask(path, {}), path).to.equal('request_invalid');
  });
  it('G-001 answers UNIMPLEMENTED to other gRPC methods', async () => {
    const outcome = await new Promise(resolve => {
      lab.client.channel.makeUnaryRequest(
        '/envoy.service.auth.v2.Authorization/Check',
        Buffer.from,
        Buffer.from,
        '',
        error => resolve(error?.code),
      );
    });
    expect(outcome).to.equal(status.UNIMPLEMENTED);
  });
  it('G-034 offers neither reflection nor channelz', async () => {
    for (const path of [
      '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
      '/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo',
      '/grpc.channelz.v1.Channelz/GetServers',
    ]) {
      const outcome = await new Promise(resolve => {
        lab.client.channel.makeUnaryRequest(path, Buffer.from, Buffer.from, '', error => resolve(error?.code));
      });
      expect(outcome, path).to.equal(status.UNIMPLEMENTED);
    }
  });
  for (const [name, bytes] of Object.entries({
    'bytes other than HTTP/2': 'GET / HTTP/1.1\r\n\r\n',
    'a preface but no SETTINGS frame': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff',
    'HEADERS on a server-initiated stream id':
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\0\x01\x04\0\0\0\x02',
  })) {
    it(`G-012 closes a connection with ${name}, and serves the others`, async () => {
      const socket = connectSocket(lab.service.ports.listen, '127.0.0.1');
      socket.on('error', () => undefined);
      socket.resume();
      const closed = new Promise(resolve => socket.on('close', resolve));
      socket.write(bytes, 'latin1');
      await closed;
      expect(reasonOf(await lab.check(`Bearer ${await lab.token()}`))).to.equal('allowed');
    });
  }
  it('G-039 answers after its event loop was blocked', async () => {
    const pending = lab.check(`Bearer ${await lab.token()}`);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
    expect(reasonOf(await pending)).to.equal('allowed');
    expect((await lab.client.health('')).status).to.equal(servingStatus.serving);
  });
  describe('log', () => {
    it('has one line per check with the decision and the identity', async () => {
      const headers = {
        'x-request-id': 'log-1',
        traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
      };
      await lab.check(`Bearer ${await lab.token()}`, { headers });
      const lines = lab.log.filter(line => line.requestId === 'log-1');
      expect(lines).to.have.lengthOf(1);
      expect(lines[0]).to.include({
        decision: 'allow',
        reason: 'allowed',
        method: 'GET',
        route: '/api/subscriptions/:account_id/*',
        uid,
        app: 'web',
        acc: 'acct1',
        role: 'owner',
        iss: lab.issuer.url,
        kid: 'k1',
        cache: 'miss',
        traceId: '0af7651916cd43dd8448eb211c80319c',
      });
      expect(lines[0]?.durationMs).to.be.a('number');
    });
    it('L-001 contains no claim and no part of an unverified token', async () => {
      const key = { ...(await signingKey('other')), kid: 'k1' };
      const claims = { uid: secrets.fresh('claim'), app: secrets.fresh('claim'), role: secrets.fresh('claim') };
      const forged = await lab.token({ key, claims });
      await lab.check(`Bearer ${forged}`, {
        headers: { 'x-request-id': 'log-2' },
        path: '/api/subscriptions/acct1?secret=1',
      });
      const text = JSON.stringify(lab.log.filter(line => line.requestId === 'log-2'));
      expect(text).to.contain('"reason":"token_invalid"').and.contain('"kid":"k1"');
      for (const part of [...Object.values(claims), 'secret', ...forged.split('.')]) expect(text).to.not.contain(part);
    });
    it('L-003 escapes and truncates foreign text', async () => {
      const key = { ...(await signingKey('k1')), kid: `\u001b[2K\u2028${'k'.repeat(500)}` };
      await lab.check(`Bearer ${await lab.token({ key })}`, { headers: { 'x-request-id': 'log-3' } });
      const [line] = lab.log.filter(each => each.requestId === 'log-3');
      expect(line?.kid).to.match(/^\\u\{1b\}\[2K\\u\{2028\}k+…$/);
      expect(String(line?.kid)).to.have.length.below(100);
    });
    it('L-007 replaces a malformed request id with a generated one, in log and answer', async () => {
      const response = await lab.check(undefined, { headers: { 'x-request-id': 'a b\r\nc' } });
      const body = JSON.parse(response.denied_response?.body ?? '{}') as { request_id: string };
      expect(body.request_id).to.match(/^[0-9a-f-]{36}$/);
      expect(lab.log.some(line => line.requestId === body.request_id)).to.equal(true);
    });
  });

  describe('health', () => {
    for (const name of ['', 'envoy.service.auth.v3.Authorization']) {
      it(`G-035 is SERVING for ${JSON.stringify(name)}`, async () => {
        expect((await lab.client.health(name)).status).to.equal(servingStatus.serving);
      });
    }
    it('G-035 is NOT_FOUND for another name', async () => {
      const code = await lab.client.health('x').catch((error: { code: number }) => error.code);
      expect(code).to.equal(status.NOT_FOUND);
    });
  });
});
