// The built product keeps nothing of a check that it has answered.
import { expect } from 'chai';
import { checkRequest } from '../support/check-request.ts';
import { keptMegabytesOf, memoryNodeOptions } from '../support/kept-memory.ts';
import { connect, type GrpcClient } from '../support/service.ts';
import { type ServiceProcess, startServiceProcess } from '../support/service-process.ts';
import type { TestIssuer } from '../support/test-issuer.ts';
import { bearer, configuration, startIssuer } from './lab.ts';

const checks = 4000;
const atOnce = 50;
/** A leak of 1 KB a check would be four times as much. */
const maxMegabytes = (checks * 256) / 1_048_576;

describe('memory that is kept', function () {
  this.timeout(300_000);
  let issuer: TestIssuer;
  let service: ServiceProcess;
  let client: GrpcClient;
  let keptMegabytes: () => Promise<number>;

  before(async () => {
    issuer = await startIssuer();
    service = await startServiceProcess(configuration(issuer.jwksUrl), { nodeOptions: await memoryNodeOptions() });
    client = connect(service.address);
    keptMegabytes = keptMegabytesOf(service);
  });
  after(async () => {
    client.close();
    await service.kill();
    await issuer.stop();
  });

  const cases: readonly (readonly [what: string, authorization: (i: number, good: string) => string, code: number])[] =
    [
      ['allowed checks', (_, good) => good, 0],
      ['refusals of ever new garbage', i => `Bearer e30.${i}.AA`, 16],
    ];
  for (const [what, authorization, code] of cases) {
    it(`does not grow with ${what}`, async () => {
      const good = await bearer();
      const path = '/api/subscriptions/accounts/acct1/items';
      const send = async (count: number): Promise<void> => {
        for (let sent = 0; sent < count; sent += atOnce) {
          await Promise.all(
            Array.from({ length: atOnce }, async (_, i) => {
              const headers = { authorization: authorization(sent + i, good) };
              const { status } = await client.check(checkRequest({ raw: true, path, headers }), 60_000);
              expect(status.code).to.equal(code);
            }),
          );
        }
      };
      // Code is compiled, pools and caches are filled.
      await send(1000);
      const before = await keptMegabytes();
      await send(checks);
      expect((await keptMegabytes()) - before, 'megabytes').to.be.below(maxMegabytes);
    });
  }
});
