// The recipes of docs/accounts.md: each configuration decides the requests below it as the page says.
import { expect } from 'chai';
import { runCommand } from '../../lab/command.ts';
import { writeFixture } from '../../lab/config-file.ts';
import { allPages } from '../../lab/document.ts';

const page = allPages().find(({ path }) => path === 'docs/accounts.md');
const recipes = (page?.text ?? '')
  .split(/^### /m)
  .slice(1)
  .map(text => {
    const [title = ''] = text.split('\n');
    const blocks = Array.from(text.matchAll(/^```yaml\n(.*?)^```$/gms), ([, block = '']) => block);
    return { title, blocks };
  });

describe('recipes of docs/accounts.md', () => {
  it('are a configuration and a table of requests each, and nothing else is YAML on the page', () => {
    expect(recipes.map(({ title }) => title)).to.deep.equal([
      'One user in many accounts',
      "Partners' issuers",
      'Issuers of one account each',
      'Subdomains',
      'Grants for a part of the paths',
      'Support staff',
      'Scopes',
    ]);
    for (const { title, blocks } of recipes) {
      expect(
        blocks.map(block => /^\w+/.exec(block)?.[0]),
        title,
      ).to.deep.equal(['issuers', 'cases']);
    }
    const yaml = page?.blocks.filter(({ language }) => language === 'yaml');
    expect(yaml).to.have.length(2 * recipes.length);
  });

  for (const { title, blocks } of recipes) {
    it(`${title}: the configuration has no problem and decides every request as the page says`, async () => {
      const [config = '', cases = ''] = blocks;
      const files = { config: writeFixture('config.yaml', config), cases: writeFixture('cases.yaml', cases) };
      const checked = await runCommand('check-config', ['--strict', '--config', files.config]);
      expect([checked.stderr, checked.code]).to.deep.equal(['', 0]);
      const { stdout, stderr, code } = await runCommand('test', ['--config', files.config, files.cases]);
      expect(stderr).to.equal('');
      expect(stdout).to.match(/^# \d+ passed, 0 failed$/m);
      expect(code).to.equal(0);
    });
  }
});
