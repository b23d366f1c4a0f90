// The files that `npm run derive` makes from the code are up to date.
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { refusalAnswers } from '../../src/authz/refusal.ts';
import { toJsonSchema } from '../../src/config/schema.ts';
import { derivedFiles } from '../../tools/derive/derived-files.ts';
import { productFamilies } from '../support/metric-families.ts';

const read = (path: string): Promise<string> => readFile(new URL(`../../${path}`, import.meta.url), 'utf8');

describe('derived files', function () {
  this.timeout(600_000); // the first run builds kustomize

  for (const { path, make } of derivedFiles) {
    it(`${path} is up to date: npm run derive`, async () => {
      expect(await read(path)).to.equal(await make());
    });
  }
});

describe('docs/metrics.md', () => {
  it('has every metric of the product, with a query', async () => {
    const page = await read('docs/metrics.md');
    const families = await productFamilies();
    const ours = families.filter(({ name }) => name.startsWith('account_authz_'));
    expect(ours).to.have.length.of.at.least(10);
    for (const { name } of ours) expect(page).to.match(new RegExp(`## \`${name}\`[^]*?\`\`\`promql\n[^\`]*${name}`));
    for (const { name } of families) expect(page).to.contain(`\`${name}\``);
  });

  it('has every reason', async () => {
    const page = await read('docs/metrics.md');
    for (const reason of [...Object.keys(refusalAnswers), 'allowed']) expect(page).to.contain(`\`${reason}\``);
  });
});

describe('docs/configuration.md', () => {
  it('has a row for every key of the schema', async () => {
    const rows = (await read('docs/configuration.md')).match(/^\| `[^`]+` \|/gm) ?? [];
    const keysIn = (node: unknown): number => {
      if (typeof node !== 'object' || node === null) return 0;
      const own = 'properties' in node && typeof node.properties === 'object' && node.properties !== null;
      // Conditions name keys again.
      const parts = Object.entries(node).filter(([name]) => name !== 'if' && name !== 'else');
      const inner = parts.reduce<number>((sum, [, value]) => sum + keysIn(value), 0);
      return inner + (own ? Object.keys((node as { properties: object }).properties).length : 0);
    };
    expect(rows).to.have.length(keysIn(toJsonSchema()));
    expect(new Set(rows)).to.have.property('size', rows.length);
  });

  it('marks exactly the keys that need a restart', async () => {
    const page = await read('docs/configuration.md');
    const marked = Array.from(page.matchAll(/^\| `([^`]+)` .*\*\*restart\*\* \|$/gm), ([, key]) => key);
    expect(marked).to.deep.equal([
      'listen',
      'listenInsecure',
      'tls',
      'admin',
      'tls.certFile',
      'tls.keyFile',
      'tls.clientCaFile',
    ]);
  });
});
