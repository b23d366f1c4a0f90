// A start that fails stops what it has started.
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect } from 'chai';
import { writeFixture } from '../../lab/config-file.ts';
import { serviceConfig } from '../../lab/service.ts';
import { createFileWatch, type WatchFiles } from '../../src/files/file-watch.ts';
import { createLogger } from '../../src/service/log.ts';
import { startService } from '../../src/service/service.ts';

describe('a failed start', () => {
  it('leaves no file watched and no address bound', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const watchFiles = createFileWatch();
    let watches = 0;
    let stops = 0;
    const counting: WatchFiles = watched => {
      watches += 1;
      const watch = watchFiles(watched);
      return {
        applyNow: watch.applyNow,
        stop() {
          stops += 1;
          watch.stop();
        },
      };
    };
    const file = writeFixture('failed-start.jsonl', '{"uid":"mallory"}\n');
    const config = serviceConfig(
      { url: 'http://127.0.0.1:9', jwksUrl: 'http://127.0.0.1:9/jwks' },
      { revocation: { file }, admin: `127.0.0.1:${port}` },
    );
    const logger = createLogger(config.log, { write: () => undefined });
    const options = { config, version: '0.0.0-test', logger, proxy: {}, watchFiles: counting };
    const failure = await startService(options).then(
      () => undefined,
      (error: Error) => error.message,
    );
    expect(failure).to.contain('which is in use');
    // The list and the key ring.
    expect({ watches, stops }).to.deep.equal({ watches: 2, stops: 2 });
    taken.close();
  });
});
