// The drain command: usage errors, an unreachable admin interface, and a real Envoy.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { type Outcome, runCommand } from '../support/command.ts';
import { freePorts, type RunningEnvoy, startEnvoy } from '../support/envoy.ts';

const run = (...args: readonly string[]): Promise<Outcome> => runCommand('drain', args);

describe('drain', () => {
  const usageErrors: readonly (readonly string[])[] = [
    ['--seconds', 'x'],
    ['--seconds', '-1'],
    ['--seconds', '3601'],
    ['--envoy-admin', 'nonsense'],
    ['--envoy-admin', 'ftp://127.0.0.1'],
    ['--unknown'],
  ];
  for (const args of usageErrors) {
    it(`exits 1 with one line for ${args.join(' ')}`, async () => {
      const { code, stderr } = await run(...args);
      expect(code).to.equal(1);
      expect(stderr.trim().split('\n')).to.have.lengthOf(1);
    });
  }

  it('warns and exits 0 when the admin interface does not answer', async () => {
    const [port] = await freePorts(1);
    const { code, stderr } = await run('--envoy-admin', `http://127.0.0.1:${port}`, '--seconds', '5');
    expect(code).to.equal(0);
    expect(stderr).to.contain('did not answer');
  });

  describe('with a real Envoy', () => {
    let envoy: RunningEnvoy;
    let client: Socket;
    beforeEach(async () => {
      envoy = await startEnvoy();
      client = connect(envoy.port, '127.0.0.1');
      await once(client, 'connect');
      // After an answer, Envoy has accepted the connection.
      client.write('GET / HTTP/1.1\r\nhost: lab.test\r\n\r\n');
      await once(client, 'data');
    });
    afterEach(async () => {
      client.destroy();
      await envoy.stop();
    });

    it('fails the readiness of Envoy and waits at most --seconds', async () => {
      const { code, stdout } = await run('--envoy-admin', `http://127.0.0.1:${envoy.adminPort}`, '--seconds', '1');
      expect(code).to.equal(0);
      expect(stdout).to.contain('still open');
      expect((await fetch(`http://127.0.0.1:${envoy.readyPort}/ready`)).status).to.equal(503);
    });

    it('exits when the last connection is closed', async () => {
      const draining = run('--envoy-admin', `http://127.0.0.1:${envoy.adminPort}`, '--seconds', '600');
      client.destroy();
      expect((await draining).stdout).to.equal('no connection is open\n');
    });
  });
});
