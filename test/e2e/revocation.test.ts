// The built product with a revocation list: at start, and mounted alone.
import { spawnSync } from 'node:child_process';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { runProduct } from '../../lab/command.ts';
import { type LogLine, type ServiceProcess, startServiceProcess } from '../../lab/service-process.ts';
import { until } from '../../lab/until.ts';
import { freshFolder } from '../support/fresh-folder.ts';
import { useRunning } from '../support/use-running.ts';
import { configuration, startIssuer } from './lab.ts';

describe('revocation list of the built product', () => {
  const issuer = useRunning(startIssuer);
  let folder: string;
  let service: ServiceProcess | undefined;

  beforeEach(async () => {
    folder = freshFolder();
  });
  afterEach(async () => {
    await service?.kill();
    service = undefined;
  });

  async function start(file: string): Promise<ServiceProcess> {
    service = await startServiceProcess({ ...configuration(issuer.jwksUrl), revocation: { file } });
    return service;
  }
  const lines = (message: string): readonly LogLine[] => service?.log().filter(({ msg }) => msg === message) ?? [];

  it('is not reloaded, and says so, where it was mounted alone and its source was replaced', async function () {
    const file = join(folder, 'revoked.jsonl');
    const source = join(folder, 'source.jsonl');
    const mountedAlone = 'mounted alone, it never changes';
    await Promise.all([file, source].map(each => writeFile(each, '')));
    if (spawnSync('mount', ['--bind', source, file]).status !== 0) return this.skip();
    try {
      const running = await start(file);
      await writeFile(`${source}~`, '{"jti":"stolen"}\n');
      await rename(`${source}~`, source);
      await until(() => lines(mountedAlone).length > 0);
      running.hangUp();
      await running.stop();
      expect(lines(mountedAlone).map(line => line.file)).to.deep.equal([file]);
      expect(lines('revocation list reloaded')).to.deep.equal([]);
    } finally {
      spawnSync('umount', [file]);
    }
  });

  it('exits at start with 1 and prints every problem if the list is invalid', async () => {
    const file = join(folder, 'revoked.jsonl');
    const config = join(folder, 'config.yaml');
    await writeFile(file, '{"uid":1}\n{"jti":"a","until":"now"}\n');
    await writeFile(config, stringify({ ...configuration(issuer.jwksUrl), revocation: { file: 'revoked.jsonl' } }));
    const problems = `${file}:1:1: uid: must be text: put it in quotes\n${file}:2:1: until: is not a known member: the members are iss, uid, acc, app, sid, jti, issuedBefore, expires\n`;
    expect(await runProduct(['serve', '--config', config])).to.deep.equal({ code: 1, stdout: '', stderr: problems });
    const outcome = await runProduct(['check-config', '--config', config]);
    expect(outcome).to.deep.equal({ code: 1, stdout: '', stderr: problems });
  });
});
