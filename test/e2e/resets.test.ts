// A client that goes away during its check resets a stream of the connection that its Envoy shares with the checks of others.
import { once } from 'node:events';
import { get } from 'node:http';
import { connect } from 'node:net';
import { expect } from 'chai';
import { authzCall } from '../../src/render/authz-call.ts';
import { envoyVersions, type RunningEnvoy, startEnvoy } from '../support/envoy.ts';
import { requestBytes } from '../support/raw-http.ts';
import { bearer, installEnvoys, type Lab, startLab } from './lab.ts';

const path = '/api/subscriptions/accounts/acct1/items';

/** nghttp2 takes 1,000 resets on a connection, and then 33 a second. */
const resetsWanted = 2500;

/** Sends a request and closes the connection before its answer. */
async function leave(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1').on('error', () => undefined);
  socket.write(requestBytes('GET', path, ['Authorization: Bearer a.b.c']));
  await once(socket, 'connect');
  socket.destroySoon();
  await once(socket, 'close');
}

describe('clients that go away during their check', () => {
  let lab: Lab;

  before(async () => {
    await installEnvoys();
    lab = await startLab();
  });
  after(() => lab.stop());

  /** Answers of others, by status, while more clients have gone away than nghttp2 takes on one connection. */
  async function answersBeside(envoy: RunningEnvoy): Promise<Record<number, number>> {
    const owner = await bearer();
    const resets = async (): Promise<number> => (await envoy.stats()).get('cluster.account-authz.http2.tx_reset') ?? 0;
    const answers: Record<number, number> = {};
    let isOver = false;
    const leaving = Array.from({ length: 4 }, async () => {
      while (!isOver) await leave(envoy.port);
    });
    while ((await resets()) < resetsWanted) {
      // Without a time limit, because the flood and its Envoy share the machine.
      const asked = get({ port: envoy.port, path, agent: false, headers: { authorization: owner } });
      const [{ statusCode: status }] = await once(asked, 'response');
      asked.destroy();
      answers[status] = (answers[status] ?? 0) + 1;
    }
    isOver = true;
    await Promise.all(leaving);
    return answers;
  }

  for (const version of envoyVersions) {
    it(`fail no check of others behind Envoy ${version}`, async () => {
      // As shipped, with limits of time that a busy machine keeps.
      const envoy = await startEnvoy({
        version,
        upstream: lab.upstream.port,
        authz: lab.service.address,
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
        const answers = await answersBeside(envoy);
        expect(Object.keys(answers)).to.deep.equal(['200']);
        // The retry hides most of what a connection that ends costs, so the bound is held too.
        const stats = await envoy.stats();
        const [checks = 0, connections = 0] = ['rq', 'cx'].map(each =>
          stats.get(`cluster.account-authz.upstream_${each}_total`),
        );
        expect(checks / connections).to.be.at.most(authzCall.maxChecksPerConnection);
      } finally {
        await envoy.stop();
      }
    });
  }
});
