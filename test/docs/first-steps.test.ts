// The configuration of docs/get-started.md and the table of docs/policy-tests.md belong together.
import { expect } from 'chai';
import { runCommand } from '../../lab/command.ts';
import { writeFixture } from '../../lab/config-file.ts';
import { allPages } from '../../lab/document.ts';

function firstYaml(path: string): string {
  const page = allPages().find(each => each.path === path);
  return page?.blocks.find(({ language }) => language === 'yaml')?.text ?? '';
}

describe('first steps in the documents', () => {
  it('have a table of requests that the configuration decides as expected', async () => {
    const config = writeFixture('config.yaml', firstYaml('docs/get-started.md'));
    const cases = writeFixture('cases.yaml', firstYaml('docs/policy-tests.md'));
    const { stdout, stderr, code } = await runCommand('test', ['--config', config, cases]);
    expect(stderr).to.equal('');
    expect(stdout).to.match(/^# 5 passed, 0 failed$/m);
    expect(code).to.equal(0);
  });
});
