import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { status } from '@grpc/grpc-js';
import { expect } from 'chai';
import { freePorts } from '../../lab/free-ports.ts';
import { secrets } from '../../lab/secrets.ts';
import { reasonOf, serviceConfig, startServiceLab, startTestService } from '../../lab/service.ts';
import { signingKey } from '../../lab/signing-key.ts';
import { until } from '../../lab/until.ts';
import { type HealthCheckResponseMessage, healthService, servingStatus } from '../../src/envoy/protocol.ts';

describe('service without its issuer', () => {
  it('K-002 starts unready, answers 503, and recovers without a restart', async () => {
    const lab = await startServiceLab({
      ready: false,
      config: { keys: { cooldownSeconds: 1, refreshSeconds: 1, maxAgeSeconds: 60 } },
      keys: [],
    });
    try {
      expect((await lab.admin('/readyz')).status).to.equal(503);
      expect((await lab.client.health('')).status).to.equal(servingStatus.notServing);
      const response = await lab.check(`Bearer ${await lab.token()}`);
      expect(reasonOf(response)).to.equal('keys_unavailable');
      expect(response.denied_response?.headers.some(({ header }) => header.key === 'retry-after')).to.equal(true);
      expect(reasonOf(await lab.check(undefined))).to.equal('token_missing');

      lab.issuer.publish([(await signingKey('k1')).publicJwk]);
      await until(async () => (await lab.admin('/readyz')).ok);
      expect(reasonOf(await lab.check(`Bearer ${await lab.token()}`))).to.equal('allowed');
    } finally {
      await lab.stop();
    }
  });
});

describe('service whose issuer publishes keys that it cannot use', () => {
  it('names each with its reason in the log and in /readyz, and serves what is left', async () => {
    const key = await signingKey('k1');
    const { kid: _, ...nameless } = key.publicJwk;
    const bad = [{ ...key.publicJwk, use: 'jwt-svid' }, { kty: 'RSA', kid: '1', e: 'AQAB', n: 'x=y' }, { kty: 'oct' }];
    const skipped = [
      { key: 'k1', reason: 'use: jwt-svid' },
      { key: '1', reason: 'n is not base64url' },
      { key: 'keys[2]', reason: 'kty oct: a shared secret' },
    ];
    const keys = { cooldownSeconds: 1, refreshSeconds: 1, maxAgeSeconds: 60 };
    const published = bad.map(publicJwk => ({ ...key, publicJwk }));
    const config = { keys, log: { level: 'debug' } };
    const lab = await startServiceLab({ ready: false, config, keys: published });
    try {
      const readiness = async () => (await (await lab.admin('/readyz')).json()) as { issuers: readonly object[] };
      expect((await readiness()).issuers[0]).to.deep.include({ state: 'loading', skipped });
      const failed = lab.log.find(({ msg }) => msg === 'key refresh failed');
      expect(failed).to.deep.include({ level: 'warn', skipped });
      expect(failed?.problem).to.equal(
        'no usable key: k1 (use: jwt-svid), 1 (n is not base64url), keys[2] (kty oct: a shared secret)',
      );

      lab.issuer.publish([...bad.slice(1), { ...nameless, kid: '' }, nameless]);
      await until(async () => (await lab.admin('/readyz')).ok);
      expect(lab.log.filter(({ msg, skipped }) => msg === 'key refresh' && skipped !== undefined)).to.have.length(1);
      expect(reasonOf(await lab.check(`Bearer ${await lab.token({ header: { kid: undefined } })}`))).to.equal(
        'allowed',
      );
    } finally {
      await lab.stop();
    }
  });
});

describe('service with keys before listen is bound', () => {
  it('becomes ready only when listen is bound', async () => {
    const keys = JSON.stringify({ keys: [(await signingKey('k1')).publicJwk] });
    const unanswered: ServerResponse[] = [];
    const issuers = createServer(({ url }, response) => {
      response.setHeader('content-type', 'application/json');
      if (url === '/first') response.end(keys);
      else unanswered.push(response);
    }).listen(0, '127.0.0.1');
    await once(issuers, 'listening');
    const { port } = issuers.address() as AddressInfo;
    const [admin] = await freePorts(1);
    const config = serviceConfig(
      { url: '', jwksUrl: '' },
      {
        admin: `127.0.0.1:${admin}`,
        issuers: ['first', 'second'].map(name => ({
          issuer: `https://${name}.test`,
          audiences: ['a'],
          jwksUrl: `http://127.0.0.1:${port}/${name}`,
        })),
        keys: { timeoutSeconds: 30 },
      },
    );
    let log = '';
    const write = (line: string): void => {
      log += line;
    };
    const starting = startTestService(config, write, { firstKeysMs: 3_600_000 });
    const readiness = async (): Promise<number> => (await fetch(`http://127.0.0.1:${admin}/readyz`)).status;
    await until(() => log.includes('keys usable') && unanswered.length > 0);
    expect(await readiness()).to.equal(503);
    for (const response of unanswered) response.end(keys);
    const service = await starting;
    expect(await readiness()).to.equal(200);
    await service.stop();
    issuers.close();
  });
});

describe('service shutdown', () => {
  it('G-037 makes the service unready, answers calls during the grace period, then closes', async () => {
    const lab = await startServiceLab({ config: { shutdown: { graceSeconds: 4 } } });
    const authorization = `Bearer ${await lab.token()}`;
    const statuses: number[] = [];
    const { path, requestSerialize, responseDeserialize } = healthService.Watch;
    const watch = lab.client.channel.makeServerStreamRequest(path, requestSerialize, responseDeserialize, {
      service: '',
    });
    watch.on('data', (message: HealthCheckResponseMessage) => statuses.push(message.status));
    const watchEnded = new Promise(resolve => watch.on('status', resolve));
    await until(() => statuses.length === 1);

    const stopping = lab.service.stop();
    expect((await lab.admin('/readyz')).status).to.equal(503);
    expect((await lab.client.health('')).status).to.equal(servingStatus.notServing);
    expect(reasonOf(await lab.check(authorization))).to.equal('allowed');
    await stopping;
    await watchEnded;
    expect(statuses).to.deep.equal([servingStatus.serving, servingStatus.notServing]);
    const code = await lab.check(authorization).catch((error: { code: number }) => error.code);
    expect(code).to.equal(status.UNAVAILABLE);
    lab.client.close();
    await lab.issuer.stop();
  });
});

describe('service on an address in use', () => {
  it('refuses to start on a port that is in use', async () => {
    const other = createServer();
    await new Promise<void>(resolve => other.listen(0, '127.0.0.1', resolve));
    const address = other.address();
    expect(await startFailure(`127.0.0.1:${typeof address === 'object' ? address?.port : 0}`)).to.contain('in use');
    other.close();
  });
});

async function startFailure(listen: string): Promise<string> {
  const config = serviceConfig({ url: 'http://127.0.0.1:9', jwksUrl: 'http://127.0.0.1:9/jwks' }, { listen });
  const outcome = await startTestService(config, line => secrets.show('log', line)).catch(
    (error: Error) => error.message,
  );
  secrets.show('standard error', String(outcome));
  return typeof outcome === 'string' ? outcome : 'it started';
}
