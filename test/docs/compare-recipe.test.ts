// The pull-request check of docs/compare.md, run as it stands there against a repository of its own.
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { builtFile } from '../../lab/built.ts';
import { changed, smallestConfig } from '../../lab/config-file.ts';
import { allPages } from '../../lab/document.ts';
import { freshFolder } from '../support/fresh-folder.ts';

const blocks = allPages().find(({ path }) => path === 'docs/compare.md')?.blocks ?? [];
const script = blocks.find(({ text }) => text.startsWith('# compare-policy.sh'))?.text ?? '';
const workflow = blocks.find(({ language }) => language === 'yaml')?.text ?? '';

describe('the pull-request check of docs/compare.md', function () {
  this.timeout(60_000);
  const folder = freshFolder();
  const git = (...args: readonly string[]): void => {
    execFileSync('git', ['-c', 'user.name=test', '-c', 'user.email=test@example.com', ...args], {
      cwd: folder,
      stdio: 'ignore',
    });
  };
  const write = (config: unknown): void => writeFileSync(join(folder, 'policy/config.yaml'), JSON.stringify(config));

  before(() => {
    for (const name of ['policy', 'tools', 'bin']) mkdirSync(join(folder, name));
    writeFileSync(join(folder, 'tools/compare-policy.sh'), script);
    writeFileSync(
      join(folder, 'bin/account-authz'),
      `#!/bin/sh\nexec ${process.execPath} ${builtFile('main.js').pathname} "$@"\n`,
    );
    chmodSync(join(folder, 'bin/account-authz'), 0o755);
    git('init', '--initial-branch=main');
    write(smallestConfig());
    git('add', '.');
    git('commit', '--message=policy');
  });

  function check(config: unknown, labels: string) {
    write(config);
    const env = { ...process.env, PATH: `${folder}/bin:${process.env.PATH}`, LABELS: labels };
    const run = spawnSync('sh', ['tools/compare-policy.sh', 'main', 'policy/config.yaml'], {
      cwd: folder,
      env,
      encoding: 'utf8',
    });
    return { code: run.status, output: `${run.stdout}${run.stderr}` };
  }
  const more = changed({ 'roles.member': ['GET'] });

  const checks: readonly (readonly [what: string, config: unknown, labels: string, code: number])[] = [
    ['passes where nothing changes', smallestConfig(), '', 0],
    ['passes where less is allowed', changed({ 'roles.owner': ['GET'] }), '', 0],
    ['fails where more is allowed', more, 'bug,policy', 3],
    ['passes where more is allowed and the label says so', more, 'bug,policy: allows more', 0],
    ['fails where the policy is invalid, whatever the label', {}, 'policy: allows more', 1],
  ];
  for (const [what, config, labels, code] of checks)
    it(what, () => {
      const run = check(config, labels);
      expect(run.code, run.output).to.equal(code);
    });

  it('writes the comment, and cases that pass as policy tests', () => {
    expect(check(more, '').output).to.include('# 1 passed, 0 failed');
    expect(readFileSync(join(folder, 'comparison.md'), 'utf8')).to.include('**Allows more**\n\n| who |');
    const { cases } = parse(readFileSync(join(folder, 'comparison-cases.yaml'), 'utf8'));
    expect(cases[0]).to.deep.include({
      name: 'more  role member  GET  /api/subscriptions/*  was role_forbidden',
      expect: 'allowed',
    });
  });

  it('is what the workflow runs, for the branch and the labels of the pull request', () => {
    const steps = parse(workflow).jobs.compare.steps;
    const step = steps.find(({ run = '' }) => run.includes('compare-policy.sh'));
    expect(step.run).to.equal('sh tools/compare-policy.sh "origin/$BASE" policy/config.yaml');
    expect(Object.keys(step.env)).to.deep.equal(['BASE', 'LABELS']);
  });
});
