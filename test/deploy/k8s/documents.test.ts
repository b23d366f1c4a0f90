// docs/deploy/ and k8s/ agree: a page for each overlay, and no missing path or component.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { overlays } from '../../../lab/kustomize.ts';

const project = new URL('../../../', import.meta.url);
const folder = new URL('docs/deploy/', project);
const pages = readdirSync(folder).filter(name => name.endsWith('.md'));
const textOf = (page: string): string => readFileSync(new URL(page, folder), 'utf8');
const all = pages.map(textOf).join('\n');

describe('docs/deploy/', () => {
  it('has a page for each overlay; the socket variant shares the page of its loopback variant', () => {
    const expected = overlays.filter(name => name !== 'envoy-sidecar-socket').map(name => `${name}.md`);
    expect(pages).to.include.members([...expected, 'README.md']);
    expect(textOf('envoy-sidecar.md')).to.contain('k8s/overlays/envoy-sidecar-socket');
  });

  it('names every overlay and every component', () => {
    expect(readdirSync(new URL('k8s/overlays', project)).sort()).to.deep.equal([...overlays].sort());
    const components = readdirSync(new URL('k8s/components', project)).filter(name => name !== 'envoy-bootstrap');
    for (const component of components) expect(all, component).to.contain(`\`${component}\``);
  });

  for (const page of pages) {
    it(`${page} names only existing files and links only to existing pages`, () => {
      const text = textOf(page);
      const paths = Array.from(text.matchAll(/\b(?:k8s|test)\/[\w./-]*\w/g), ([path]) => path);
      const own = paths.filter(path => !text.includes(`account-authz/${path}`));
      const links = Array.from(text.matchAll(/\]\(([^):#]+)(?:#[^)]*)?\)/g), ([, link]) => link ?? '');
      expect(own.filter(path => !existsSync(new URL(path, project)))).to.deep.equal([]);
      expect(links.filter(link => !existsSync(new URL(link, folder)))).to.deep.equal([]);
    });
  }
});
