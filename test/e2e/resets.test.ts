// A client that goes away during its check resets a stream of the connection that its Envoy shares with the checks of others.
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect } from 'chai';
import { defaultEnvoyVersion, envoyVersions, type RunningEnvoy } from '../../lab/envoy.ts';
import { exchange, requestBytes } from '../../lab/raw-http.ts';
import { authzConnection } from '../../src/toolkit/envoy-settings/authz-cluster.ts';
import { useLab } from './lab.ts';

const path = '/api/subscriptions/accounts/acct1/items';

/** nghttp2 takes 1,000 resets on a connection, and then 33 a second; a second connection must not halve them to less than the limit. */
const resetsWanted = 2 * authzConnection.maxChecksPerConnection + 200;
const [oldest] = envoyVersions;

/** Sends a request and closes the connection before its answer. */
async function leave(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined);
  socket.write(requestBytes('GET', path, ['Authorization: Bearer a.b.c']));
  await once(socket, 'connect');
  socket.destroySoon();
  await once(socket, 'close');
}

async function resetsOf(envoy: RunningEnvoy): Promise<number> {
  const name = 'cluster.account-authz.http2.tx_reset';
  const text = await (await fetch(`http://127.0.0.1:${envoy.adminPort}/stats?filter=^${name}$`)).text();
  return Number(/: (\d+)/.exec(text)?.[1] ?? 0);
}

describe('clients that go away during their check', () => {
  const suite = useLab();
  const { lab } = suite;

  /** More clients go away than nghttp2 takes on one connection, all before account-authz reads the first of their checks. */
  async function leaveAll(envoy: RunningEnvoy): Promise<void> {
    const leaveSome = async (): Promise<void> => {
      for (let i = 0; i < 25; i += 1) await leave(envoy.port);
    };
    lab.service.pause();
    try {
      while ((await resetsOf(envoy)) < resetsWanted) await Promise.all(Array.from({ length: 4 }, leaveSome));
    } finally {
      lab.service.resume();
    }
  }

  for (const version of [oldest, defaultEnvoyVersion]) {
    it(`fail no check of others behind Envoy ${version}`, async () => {
      // As shipped, with limits of time that a busy machine keeps.
      const envoy = await suite.start({
        version,
        edit(bootstrap) {
          const text = JSON.stringify(bootstrap.toJS());
          const edited = text
            .replaceAll('"0.5s"', '"30s"')
            .replaceAll('"0.1s"', '"10s"')
            .replaceAll('"0.25s"', '"30s"');
          bootstrap.contents = bootstrap.createNode(JSON.parse(edited));
        },
      });
      try {
        await leaveAll(envoy);
        const { status } = await exchange(envoy.port, requestBytes('GET', path, [`Authorization: ${suite.owner}`]));
        expect(status).to.equal(200);
        // The retry hides most of what a connection that ends costs: account-authz has given up none, and the bound is held.
        const stats = await envoy.stats();
        const [checks = 0, connections = 0] = ['rq', 'cx'].map(each =>
          stats.get(`cluster.account-authz.upstream_${each}_total`),
        );
        expect(checks / connections).to.be.at.most(authzConnection.maxChecksPerConnection);
        expect(stats.get('cluster.account-authz.upstream_cx_close_notify')).to.equal(0);
      } finally {
        await envoy.stop();
      }
    });
  }
});
