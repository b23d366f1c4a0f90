import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { startKubeApi } from '../../../bench/speed/kube-api.ts';

describe('a Kubernetes API of the bench', () => {
  let directory: string;

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'bench-kube-'));
  });
  after(() => rm(directory, { recursive: true }));

  async function program(name: string, text: string): Promise<string> {
    const path = join(directory, name);
    await writeFile(path, `#!${process.execPath}\nconst fs = require('node:fs');\n${text}`, { mode: 0o755 });
    return path;
  }

  it('that ends is told with its own words, and nothing of it stays', async () => {
    const pidFile = join(directory, 'etcd.pid');
    const tools = {
      etcd: await program('etcd', `fs.writeFileSync('${pidFile}', String(process.pid)); setInterval(() => {}, 1000);`),
      // Not before etcd has told who it is.
      apiServer: await program(
        'kube-apiserver',
        `const timer = setInterval(() => {
           if (!fs.existsSync('${pidFile}')) return;
           clearInterval(timer);
           process.stderr.write('no such flag');
         }, 10);`,
      ),
    };
    const start = startKubeApi(tools, undefined, join(directory, 'kube'));
    expect(await start.then(String, (error: Error) => error.message)).to.equal(
      'the Kubernetes API has ended:\nno such flag',
    );
    const pid = Number(await readFile(pidFile, 'utf8'));
    expect(() => process.kill(pid, 0)).to.throw('ESRCH');
  });
});
