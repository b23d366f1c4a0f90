// The checks that explain derives from a refusal: each reason and detail belongs to one check and has a remedy.
import { expect } from 'chai';
import { checkNames, checks, isAfter } from '../../src/authz/checks.ts';

type Definitions = Readonly<Record<string, Readonly<Record<string, string>>>>;

describe('checks', () => {
  for (const [check, definitions] of Object.entries<Definitions>(checks)) {
    it(`${check}: every reason has a detail with a remedy`, () => {
      expect(Object.keys(definitions)).to.have.length.above(0);
      for (const remedies of Object.values(definitions)) {
        expect(Object.keys(remedies)).to.have.length.above(0);
        for (const remedy of Object.values(remedies)) expect(remedy).to.match(/^\S.{10,}[^\s;]$/);
      }
    });
  }

  it('checkNames lists every check of a request in order, without "service", an internal error', () => {
    expect(['service', ...checkNames]).to.deep.equal(Object.keys(checks));
  });

  it('each pair of reason and detail belongs to one check', () => {
    const details = Object.values<Definitions>(checks).flatMap(definitions =>
      Object.entries(definitions).flatMap(([reason, remedies]) =>
        Object.keys(remedies).map(each => `${reason}: ${each}`),
      ),
    );
    expect(new Set(details).size).to.equal(details.length);
  });

  it('isAfter compares two checks by their order', () => {
    expect(isAfter('audience', 'signature')).to.equal(true);
    expect(isAfter('signature', 'signature')).to.equal(false);
    expect(isAfter('key', 'signature')).to.equal(false);
  });
});
