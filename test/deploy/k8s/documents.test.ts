// docs/deploy/ and k8s/ agree: a page for each overlay, and no missing path.
import { existsSync, readdirSync } from 'node:fs';
import { expect } from 'chai';
import { allPages } from '../../../lab/document.ts';
import { overlays } from '../../../lab/kustomize.ts';

const project = new URL('../../../', import.meta.url);

describe('k8s/ and its documents', () => {
  it('have a page for each overlay', () => {
    expect(readdirSync(new URL('k8s/overlays', project))).to.have.members([...overlays]);
    expect(readdirSync(new URL('docs/deploy', project))).to.include.members(overlays.map(name => `${name}.md`));
  });

  it('name only files of k8s/ that exist, or that a command there writes', () => {
    const pages = allPages().filter(({ path }) => path !== 'CHANGELOG.md');
    const named = pages.flatMap(({ path, text }) =>
      Array.from(text.matchAll(/\bk8s\/[\w./-]*\w/g), ([name]) => ({ path, name })),
    );
    expect(named).to.have.length.of.at.least(30);
    const missing = named.filter(({ name }) => !existsSync(new URL(name, project)));
    expect(missing.filter(({ name }) => !name.startsWith('k8s/overlays/envoy-sidecar/authz'))).to.deep.equal([]);
  });
});
