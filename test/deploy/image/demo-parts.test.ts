// The processes of the demo image stop as compose and the manifests ask them to. Their controls: test/demo/compose-client.test.ts.
import { once } from 'node:events';
import { expect } from 'chai';
import { send } from '../../../demo/http-client.ts';
import { startPart } from '../../support/demo-part.ts';

describe('demo/serve.ts', () => {
  for (const name of ['upstream', 'authentication-service']) {
    it(`${name} is healthy, has no control at its health port, and exits with 0 on SIGTERM`, async () => {
      const { child, at } = await startPart(name);
      try {
        expect((await send({ origin: at.health, target: '/healthz' })).status).to.equal(200);
        for (const target of ['/requests', '/state'])
          expect((await send({ origin: at.health, target })).status).to.equal(404);
        const exited = once(child, 'exit');
        child.kill('SIGTERM');
        expect(await exited).to.deep.equal([0, null]);
      } finally {
        child.kill('SIGKILL');
      }
    });
  }
});
