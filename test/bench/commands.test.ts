// A short run of the bench as a command. It checks every answer and evaluates no floor.
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { builtFile } from '../../lab/built.ts';
import { programArguments } from '../../lab/compiled.ts';
import { secrets } from '../../lab/secrets.ts';

const project = fileURLToPath(new URL('../../', import.meta.url));
const run = promisify(execFile);

interface Exit {
  readonly code: number;
  readonly output: string;
}

function scanned(exit: Exit): Exit {
  secrets.show('command', exit.output);
  return exit;
}

async function bench(...args: readonly string[]): Promise<Exit> {
  try {
    const command = [...programArguments('bench/bench.ts'), ...args];
    const { stdout, stderr } = await run(process.execPath, command, { cwd: project });
    return scanned({ code: 0, output: stdout + stderr });
  } catch (error) {
    const { code = -1, stdout = '', stderr = '' } = error as { code?: number; stdout?: string; stderr?: string };
    return scanned({ code, output: stdout + stderr });
  }
}

describe('a short run of the bench', () => {
  let directory: string;

  before(async () => {
    builtFile('main.js');
    directory = await mkdtemp(join(tmpdir(), 'bench-'));
  });
  after(() => rm(directory, { recursive: true }));

  it('checks and measures two contenders, evaluates no floor, and writes a page and a chart', async () => {
    const { code, output } = await bench('--trial', '--own-node', '--only', 'nothing,known', '--out', directory);
    expect(output).to.match(/^`nothing`: a gRPC service in Node that decides nothing +[\d,]+ /m);
    expect(output).to.match(/^`known`: account-authz, one known token +[\d,]+ /m);
    expect(output).to.not.match(/ met$|NOT MET/m);
    expect(code).to.equal(0);
    expect((await readdir(directory)).sort()).to.deep.equal(['calls.svg', 'results.md']);
    for (const name of await readdir(directory)) {
      const text = await readFile(join(directory, name), 'utf8');
      expect(text, name).to.not.match(/127\.0\.0\.1|localhost|\/(?:tmp|work|home|root)\/|NaN|undefined/);
    }
    const svg = await readFile(join(directory, 'calls.svg'), 'utf8');
    expect(svg).to.match(/class="f-mark"[^>]*>[\d,]+: a gRPC service in Node that decides nothing<\/text>/);
    expect([...svg.matchAll(/<(?:svg|style|text)\b/g)]).to.have.lengthOf([...svg.matchAll(/<\//g)].length);
  });
});
