// `drain` and `serve --envoy-admin` with a real Envoy: one makes it unready, the other takes that back.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { runCommand } from '../../lab/command.ts';
import { type RunningEnvoy, startEnvoy } from '../../lab/envoy.ts';
import { startServiceProcess } from '../../lab/service-process.ts';
import { useRunning } from '../support/use-running.ts';
import { configuration, startIssuer } from './lab.ts';

describe('drain of a real Envoy', () => {
  const issuer = useRunning(startIssuer);
  let envoy: RunningEnvoy;
  let admin: string;
  let client: Socket;
  const get = (): Promise<Buffer[]> => {
    client.write('GET / HTTP/1.1\r\nhost: lab.test\r\n\r\n');
    return once(client, 'data') as Promise<Buffer[]>;
  };
  const readiness = async (): Promise<number> => (await fetch(`http://127.0.0.1:${envoy.readyPort}/ready`)).status;
  beforeEach(async () => {
    envoy = await startEnvoy();
    admin = `http://127.0.0.1:${envoy.adminPort}`;
    client = connect(envoy.port, '127.0.0.1');
    await once(client, 'connect');
    // After an answer, Envoy has accepted the connection.
    await get();
  });
  afterEach(async () => {
    client.destroy();
    await envoy.stop();
  });

  it('ends when the last connection is closed with its answer', async () => {
    const draining = runCommand('drain', ['--envoy-admin', admin, '--seconds', '600']);
    while ((await readiness()) !== 503);
    expect(String(await get())).to.match(/^connection: close\r$/im);
    expect((await draining).stdout).to.equal('no connection is open\n');
  });

  it('fails the readiness of Envoy, waits at most --seconds, and is taken back by serve --envoy-admin', async () => {
    const { code, stdout } = await runCommand('drain', ['--envoy-admin', admin, '--seconds', '1']);
    expect(code).to.equal(0);
    expect(stdout).to.contain('still open');
    expect(await readiness()).to.equal(503);
    const service = await startServiceProcess(configuration(issuer.jwksUrl), { arguments: ['--envoy-admin', admin] });
    try {
      expect(await readiness()).to.equal(200);
      expect(String(await get())).not.to.match(/^connection: close\r$/im);
    } finally {
      await service.kill();
    }
  });
});
