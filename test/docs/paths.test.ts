// docs/paths.md: the product answers each path of the table as the page says.
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { admit } from '../../src/authz/authorize.ts';
import { facts, policy } from '../support/facts.ts';

const page = readFileSync(new URL('../../docs/paths.md', import.meta.url), 'utf8');
const rows = Array.from(page.matchAll(/^\| `(\/[^`]+)` \| (allowed|refused) \| (allowed|refused) \|$/gm));

describe('docs/paths.md', () => {
  it('has a table of paths', () => {
    expect(rows).to.have.length.of.at.least(20);
  });

  for (const [, path = '', ...said] of rows) {
    for (const [i, characters] of (['strict', 'rfc3986'] as const).entries()) {
      it(`says that ${path} is ${said[i]} where characters is ${characters}`, () => {
        const routes = ['/files/:account_id/*', '/files/:account_id/admin'].map(each => ({ path: each, characters }));
        const { outcome } = admit(policy({ routes }), facts({ target: path }));
        expect(outcome).to.include(said[i] === 'allowed' ? { kind: 'admitted' } : { reason: 'request_invalid' });
      });
    }
  }
});
