// The processes of the demo image as compose and the manifests start them.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { expect } from 'chai';
import { jsonOf, send } from '../../../demo/http-client.ts';
import { type Part, startPart } from '../../support/demo-part.ts';

async function exitCodeAfter(child: ChildProcess, signal: NodeJS.Signals): Promise<unknown> {
  child.kill(signal);
  const [code] = await once(child, 'exit');
  return code;
}

describe('demo/serve.ts', function () {
  this.timeout(60_000);

  describe('upstream', () => {
    let part: Part;
    before(async () => {
      part = await startPart('upstream');
    });
    after(() => part.child.kill('SIGKILL'));

    it('echoes the request, and its control counts requests', async () => {
      const asked = jsonOf(await send({ origin: part.at.listen, target: '/api/subscriptions?x=1' }));
      const { count, last } = jsonOf(await send({ origin: part.at.control, target: '/requests' }));
      expect(asked).to.include({ method: 'GET', path: '/api/subscriptions?x=1' });
      expect({ count, last }).to.deep.equal({ count: 1, last: asked });
    });

    it('is healthy, and has no control at its health port', async () => {
      expect((await send({ origin: part.at.health, target: '/healthz' })).status).to.equal(200);
      expect((await send({ origin: part.at.health, target: '/requests' })).status).to.equal(404);
    });

    it('exits with 0 on SIGTERM', async () => {
      expect(await exitCodeAfter(part.child, 'SIGTERM')).to.equal(0);
    });
  });

  describe('authentication-service', () => {
    let part: Part;
    before(async () => {
      part = await startPart(
        'authentication-service',
        '--issuer',
        'http://127.0.0.1:1',
        '--audience',
        'https://a.test',
      );
    });
    after(() => part.child.kill('SIGKILL'));

    const control = async (method: string, target: string, body?: object): Promise<Record<string, unknown>> => {
      const sent = body === undefined ? {} : { body: JSON.stringify(body) };
      return { ...jsonOf(await send({ origin: part.at.control, method, target, ...sent })) };
    };
    const publishedKids = async (): Promise<unknown[]> => {
      const { keys } = jsonOf(await send({ origin: part.at.listen, target: '/.well-known/jwks.json' }));
      return (keys as { kid: string }[]).map(({ kid }) => kid);
    };

    it('has the given issuer and audience', async () => {
      const { issuer } = jsonOf(await send({ origin: part.at.listen, target: '/.well-known/openid-configuration' }));
      expect(issuer).to.equal('http://127.0.0.1:1');
      expect(await control('GET', '/state')).to.include({ issuer, audience: 'https://a.test' });
    });

    it('rotates its keys and mints tokens through its control', async () => {
      const { signingKid: before } = await control('GET', '/state');
      const { signingKid: soft } = await control('POST', '/rotation');
      expect(await publishedKids()).to.deep.equal([soft, before]);
      const { signingKid: hard } = await control('POST', '/rotation/hard');
      expect(await publishedKids()).to.deep.equal([hard]);
      const { token } = await control('POST', '/tokens', { claims: { uid: 'u' } });
      const [header = ''] = String(token).split('.');
      expect(JSON.parse(Buffer.from(header, 'base64url').toString())).to.include({ kid: hard });
    });

    it('stops and starts again through its control', async () => {
      await control('POST', '/stop');
      const failure = await send({ origin: part.at.listen, target: '/.well-known/jwks.json' }).catch(
        error => error.code,
      );
      expect(failure).to.equal('ECONNREFUSED');
      await control('POST', '/start');
      expect(await publishedKids()).to.have.length(1);
    });

    it('exits with 0 on SIGTERM', async () => {
      expect(await exitCodeAfter(part.child, 'SIGTERM')).to.equal(0);
    });
  });
});
