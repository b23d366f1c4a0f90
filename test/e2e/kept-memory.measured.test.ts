// The built product keeps nothing of a check that it has answered, and little of a long revocation list.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { checkRequest } from '../../lab/check-request.ts';
import { connect, type GrpcClient } from '../../lab/service.ts';
import { type ServiceProcess, startServiceProcess } from '../../lab/service-process.ts';
import { until } from '../../lab/until.ts';
import { freshFolder } from '../support/fresh-folder.ts';
import { keptMegabytesOf, memoryNodeOptions } from '../support/kept-memory.ts';
import { useRunning } from '../support/use-running.ts';
import { bearer, configuration, startIssuer } from './lab.ts';

const checks = 4000;
const atOnce = 50;
/** A leak of 1 KB in either kind of check would be twice as much. */
const maxMegabytes = (checks * 256) / 1_048_576;

describe('memory that is kept', function () {
  this.timeout(300_000);
  const issuer = useRunning(startIssuer);
  let service: ServiceProcess;
  let client: GrpcClient;
  let keptMegabytes: () => Promise<number>;
  const folder = freshFolder();

  before(async () => {
    await writeFile(join(folder, 'revoked.jsonl'), '');
    const config = { ...configuration(issuer.jwksUrl), revocation: { file: join(folder, 'revoked.jsonl') } };
    service = await startServiceProcess(config, { nodeOptions: await memoryNodeOptions() });
    client = connect(service.address);
    keptMegabytes = keptMegabytesOf(service);
  });
  after(async () => {
    client.close();
    await service.kill();
  });

  it('does not grow with allowed checks, nor with refusals of ever new garbage', async () => {
    const good = await bearer();
    const path = '/api/subscriptions/accounts/acct1/items';
    const check = async (number: number): Promise<void> => {
      const isGood = number % 2 === 0;
      const headers = { authorization: isGood ? good : `Bearer e30.${number}.AA` };
      const { status } = await client.check(checkRequest({ raw: true, path, headers }), 60_000);
      expect(status.code).to.equal(isGood ? 0 : 16);
    };
    const send = async (from: number, count: number): Promise<void> => {
      for (let sent = 0; sent < count; sent += atOnce)
        await Promise.all(Array.from({ length: atOnce }, (_, i) => check(from + sent + i)));
    };
    // Code is compiled, pools and caches are filled.
    await send(0, 1000);
    const before = await keptMegabytes();
    await send(1000, checks);
    expect((await keptMegabytes()) - before, 'megabytes').to.be.below(maxMegabytes);
  });

  it('has no part of the long values of a revocation list', async () => {
    const entries = 20_000;
    const before = await keptMegabytes();
    const line = (i: number): string => `{"jti":"${String(i).padStart(1000, 'j')}"}\n`;
    await writeFile(join(folder, 'revoked.jsonl'), Array.from({ length: entries }, (_, i) => line(i)).join(''));
    await until(() => service.log().some(({ msg }) => msg === 'revocation list reloaded'));
    // The values alone take 19 MB.
    expect((await keptMegabytes()) - before, 'megabytes').to.be.below(8);
  });
});
