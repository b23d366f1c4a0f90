// The worker thread that validates a configuration: same result as loadConfig, with bounded memory and time.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { validateInThread } from '../../src/config/config-thread.ts';
import { loadConfig } from '../../src/config/load.ts';
import { formatProblems } from '../../src/config/problems.ts';
import { builtFile } from '../support/built.ts';
import { fixtureFolder, smallestConfig, writeFixture } from '../support/config-file.ts';
import { signingKey } from '../support/signing-key.ts';

const entry = builtFile('config-thread-entry.js');

function validate(content: string, file = join(fixtureFolder(), 'config.yaml')) {
  return validateInThread({ kind: 'bytes', bytes: Buffer.from(content) }, file, { entry });
}

// A busy machine can take longer than the limit of 10 s: then again, until the test itself times out.
async function validateCalmly(content: string): ReturnType<typeof validate> {
  const result = await validate(content);
  return JSON.stringify(result).includes('longer than 10 s') ? validateCalmly(content) : result;
}

const megabyte = 1024 * 1024;
const fill = (unit: string, head = ''): string => head + unit.repeat((megabyte - head.length) / unit.length);

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

  // docs/reload.md promises these sizes.
  const large: readonly (readonly [name: string, count: number, roles: readonly string[] | undefined])[] = [
    ['10,000 routes', 10_000, undefined],
    ['5,000 routes with two roles each', 5_000, ['owner', 'admin']],
  ];
  for (const [name, count, roles] of large) {
    it(`accepts ${name} within its memory and time limits`, async () => {
      const routes = Array.from({ length: count }, (_, i) =>
        [
          `  - path: /api/resource-${i}/accounts/:account_id/*`,
          ...(roles ? [`    roles: [${roles.join(', ')}]`] : []),
        ].join('\n'),
      );
      const { issuers } = smallestConfig();
      const result = await validateCalmly(
        [`issuers: ${JSON.stringify(issuers)}`, 'roles: { owner: ["*"], admin: [GET] }', 'routes:', ...routes, ''].join(
          '\n',
        ),
      );
      expect(result.kind === 'config' ? result.config.routes.length : result).to.equal(count);
    });
  }

  const hostile: readonly (readonly [name: string, content: string])[] = [
    ['commas without items', fill(',', '[')],
    ['empty issuers', fill('- {}\n', 'issuers:\n')],
  ];
  for (const [name, content] of hostile) {
    it(`refuses 1 MiB of ${name} at a limit, without blocking the event loop`, async () => {
      let turns = 0;
      const turning = setInterval(() => {
        turns += 1;
      }, 1);
      const result = await validate(content);
      clearInterval(turning);
      expect(result).to.deep.include({ kind: 'refused', count: 1 });
      // Which limit is reached first depends on the machine.
      expect(JSON.stringify(result)).to.match(
        /must not take more than 128 MB of memory|must not take longer than 10 s/,
      );
      expect(turns).to.be.above(20);
    });
  }
});
