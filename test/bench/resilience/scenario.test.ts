// The resilience scenario in brief: every answer judged, no figure.
import { execFile } from 'node:child_process';
import { access, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { envoyBinary } from '../../support/envoy.ts';
import { secrets } from '../../support/secrets.ts';

const project = fileURLToPath(new URL('../../../', import.meta.url));
const run = promisify(execFile);

interface Ended {
  readonly code: number;
  readonly output: string;
}

function shown(ended: Ended): Ended {
  secrets.show('command', ended.output);
  return ended;
}

describe('the resilience scenario in brief', function () {
  this.timeout(120_000);
  let directory: string;
  let ended: Ended;

  before(async () => {
    await access(`${project}dist/main.js`).catch(() => run('npm', ['run', 'build'], { cwd: project }));
    await envoyBinary();
    directory = await mkdtemp(join(tmpdir(), 'resilience-'));
    ended = await resilience('--short', '--out', directory);
  });
  after(() => rm(directory, { recursive: true }));

  it('ends with 0: every answer was the right one', () => {
    expect(ended.output).to.match(/^met +Every answer is the right one.*: 0 wrong, 0 missing, /m);
    expect(ended).to.deep.include({ code: 0 });
  });

  for (const bar of [
    /^met +Rotation with overlap: .*: 0 wrong, 0 refused of \d+ good tokens$/m,
    /^met +Hard rotation: good tokens refused for at most 1 s, then never: 0\.\d\d s, [1-9]\d* refused$/m,
    /^met +Outage within the age: no good token refused: 0 refused of \d+ good tokens, [1-9]\d* failed refresh/m,
    /^met +Outage past the age: only 503, never 401 or an allow: [1-9]\d* × 503$/m,
    /^met +Recovery without restart, .*, then 0 good tokens refused$/m,
    /^met +Slow issuer: no good token refused: 0 refused of \d+ good tokens$/m,
    /^met +Flood: at most one fetch a cooldown: /m,
    /^met +Never two fetches within the cooldown of 1 s: /m,
  ]) {
    it(`tells: ${bar.source.slice('^met +'.length).split(':')[0]}`, () => {
      expect(ended.output).to.match(bar);
    });
  }

  it('judges no figure', () => {
    expect(ended.output.match(/^not judged /gm)).to.have.length(3);
  });

  it('leaves a picture and a page that name neither host nor path', async () => {
    expect((await readdir(directory)).sort()).to.deep.equal(['resilience.md', 'resilience.svg']);
    for (const name of ['resilience.md', 'resilience.svg']) {
      const text = await readFile(join(directory, name), 'utf8');
      expect(text).to.match(/Envoy \d+\.\d+\.\d+/);
      expect(text).to.not.match(/127\.0\.0\.1|localhost|\/(?:tmp|work|home|root)\//);
      expect(text).to.not.match(/NaN|undefined|Infinity/);
    }
  });

  it('prints no colour into a pipe', () => {
    expect(ended.output).to.not.include('\x1b');
  });
});

async function resilience(...args: readonly string[]): Promise<Ended> {
  const command = ['--import', 'tsx', 'bench/resilience.ts', ...args];
  try {
    const { stdout, stderr } = await run(process.execPath, command, { cwd: project });
    return shown({ code: 0, output: stdout + stderr });
  } catch (error) {
    const { code = -1, stdout = '', stderr = '' } = error as { code?: number; stdout?: string; stderr?: string };
    return shown({ code, output: stdout + stderr });
  }
}
