// The roots that a process trusts, and how a thread gets them.
import { expect } from 'chai';
import { rootsInForce, setRootsInForce } from '../../src/keys/trusted-roots.ts';

describe('roots in force', () => {
  it('are certificates', () => {
    expect(rootsInForce().length).to.be.above(50);
    expect(rootsInForce()[0]).to.match(/^-----BEGIN CERTIFICATE-----/);
  });

  it('are those that Node lists as its default, where it lists them', () => {
    const lists = { default: ['own', 'extra'], bundled: ['own'] };
    expect(rootsInForce({ rootCertificates: ['own'], getCACertificates: type => lists[type] })).to.equal(lists.default);
    expect(rootsInForce({ rootCertificates: ['own'] })).to.deep.equal(['own']);
  });

  it('become those of a thread where Node can set them', () => {
    let ofThread: readonly string[] = [];
    setRootsInForce(['own', 'extra'], {
      rootCertificates: [],
      setDefaultCACertificates(roots) {
        ofThread = roots;
      },
    });
    expect(ofThread).to.deep.equal(['own', 'extra']);
    expect(() => setRootsInForce(['own'], { rootCertificates: [] })).to.not.throw();
  });
});
