import { expect } from 'chai';
import { checkNames, checks, isAfter } from '../../src/authz/checks.ts';

type Definitions = Readonly<Record<string, Readonly<Record<string, string>>>>;

describe('checks', () => {
  for (const [check, definitions] of Object.entries<Definitions>(checks)) {
    it(`has a reason, a detail and a remedy for ${check}`, () => {
      expect(Object.keys(definitions)).to.have.length.above(0);
      for (const remedies of Object.values(definitions)) {
        expect(Object.keys(remedies)).to.have.length.above(0);
        for (const remedy of Object.values(remedies)) expect(remedy).to.match(/^\S.{10,}[^\s;]$/);
      }
    });
  }

  it('names every check of a request, which an internal error is not', () => {
    expect(['service', ...checkNames]).to.deep.equal(Object.keys(checks));
  });

  it('has a detail in one place for a reason, so that it leads to one check', () => {
    const details = Object.values<Definitions>(checks).flatMap(definitions =>
      Object.entries(definitions).flatMap(([reason, remedies]) =>
        Object.keys(remedies).map(each => `${reason}: ${each}`),
      ),
    );
    expect(new Set(details).size).to.equal(details.length);
  });

  it('compares two checks by their order', () => {
    expect(isAfter('audience', 'signature')).to.equal(true);
    expect(isAfter('signature', 'signature')).to.equal(false);
    expect(isAfter('key', 'signature')).to.equal(false);
  });
});
