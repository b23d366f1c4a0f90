// The worker thread that validates a configuration: same result as loadConfig, with bounded memory.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { builtFile } from '../../lab/built.ts';
import { fixtureFolder, smallestConfig, writeFixture } from '../../lab/config-file.ts';
import { signingKey } from '../../lab/signing-key.ts';
import { validateInThread } from '../../src/config/config-thread.ts';
import { loadConfig } from '../../src/config/load.ts';
import { formatProblems } from '../../src/config/problems.ts';

// Fails here where the thread is older than the source.
builtFile('config-thread-entry.js');

function validate(content: string, file = join(fixtureFolder(), 'config.yaml')) {
  return validateInThread({ kind: 'bytes', bytes: Buffer.from(content) }, file);
}

/** Validates in a thread that runs this script. */
function validateWith(script: string): ReturnType<typeof validate> {
  const content = { kind: 'bytes', bytes: Buffer.from('x') } as const;
  return validateInThread(content, 'x.yaml', { script: new URL(`data:text/javascript,${encodeURIComponent(script)}`) });
}

describe('configuration thread', () => {
  it('returns the same settings as loadConfig, also for relative file names', async () => {
    const { publicJwk } = await signingKey('k1');
    await writeFile(join(fixtureFolder(), 'keys.json'), JSON.stringify({ keys: [publicJwk] }));
    const [issuer] = smallestConfig().issuers;
    const content = JSON.stringify({
      ...smallestConfig(),
      issuers: [{ issuer: issuer?.issuer, audiences: issuer?.audiences, jwksFile: 'keys.json' }],
    });
    const file = writeFixture('thread.yaml', content);
    expect(await validate(content, file)).to.deep.equal(await loadConfig(file));
  });

  it('validates the given bytes, not the file', async () => {
    const file = writeFixture('thread-other.yaml', 'broken: [');
    expect(await validate(JSON.stringify(smallestConfig()), file)).to.have.property('kind', 'config');
  });

  it('returns problems as check-config prints them', async () => {
    const file = writeFixture('thread-bad.yaml', { ...smallestConfig(), apps: [], colour: 'red' });
    const loaded = await loadConfig(file);
    const printed = loaded.kind === 'config' ? '' : formatProblems(file, loaded.problems);
    const result = await validate(JSON.stringify({ ...smallestConfig(), apps: [], colour: 'red' }), file);
    expect(result).to.deep.include({ kind: 'refused', problems: printed.trimEnd().split('\n'), count: 2 });
  });

  it('returns the read error of an unreadable file as its problem', async () => {
    const missing = { kind: 'problem', reason: 'missing', problem: 'the file does not exist' } as const;
    const result = await validateInThread(missing, '/x/config.yaml');
    expect(result).to.deep.include({
      kind: 'refused',
      problems: ['/x/config.yaml:1:1: the file does not exist'],
      count: 1,
    });
  });

  it('returns at most 20 problems of at most 301 characters, and the total count', async () => {
    const keys = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`${i} ${'k'.repeat(100)}`, 1]));
    const result = await validate(JSON.stringify({ ...smallestConfig(), ...keys }), join('/', 'd'.repeat(400)));
    expect(result).to.include({ kind: 'refused', count: 50 });
    const problems = 'problems' in result ? result.problems : [];
    expect(problems).to.have.lengthOf(20);
    for (const problem of problems) expect(problem.length).to.be.at.most(301);
  });

  // How much of a real file fits, and that one above it is refused: test/e2e/reload.test.ts.
  it('refuses what takes more than its memory, without blocking the event loop', async () => {
    let turns = 0;
    const turning = setInterval(() => {
      turns += 1;
    }, 1);
    const result = await validateWith('const kept = []; for (;;) kept.push(Array(100_000).fill(0));');
    clearInterval(turning);
    const problem = 'x.yaml: reading the file must not take more than 128 MB of memory: make it smaller or simpler';
    expect(result).to.deep.include({ kind: 'refused', problems: [problem], count: 1 });
    expect(turns).to.be.above(5);
  });

  const failures: readonly (readonly [name: string, script: string, problem: string])[] = [
    ['throws', "throw Object.assign(new Error('secret'), { code: 'E1' })", 'the file cannot be validated (E1)'],
    ['ends', 'process.exit()', 'the thread that reads the file ended without an answer'],
  ];
  for (const [name, script, problem] of failures) {
    it(`refuses the file if it ${name} without an answer`, async () => {
      expect(await validateWith(script)).to.deep.include({
        kind: 'refused',
        problems: [`x.yaml: ${problem}`],
        count: 1,
      });
    });
  }
});
