import { expect } from 'chai';
import { createIdentityHeaders } from '../../src/envoy/identity-headers.ts';

describe('identity headers', () => {
  it('are the prefix and a field each, in the order of the fields', () => {
    expect([...createIdentityHeaders('x-').names]).to.deep.equal([
      ['uid', 'x-uid'],
      ['app', 'x-app'],
      ['acc', 'x-acc'],
      ['role', 'x-role'],
      ['iss', 'x-iss'],
    ]);
  });

  it('have look-alikes for every hyphen of a longer prefix', () => {
    const { lookAlikes } = createIdentityHeaders('x-a-b-');
    expect(lookAlikes).to.have.lengthOf(5 * 7);
    expect(lookAlikes).to.include.members(['x_a-b-uid', 'x-a_b_uid', 'x_a_b_uid']);
    expect(lookAlikes).to.not.include('x-a-b-uid');
  });

  const rows: readonly (readonly [name: string, shown: readonly string[], removed: readonly string[]])[] = [
    ['nothing where nothing is shown', [], []],
    ['another name under the prefix', ['x-auth-email'], ['x-auth-email']],
    ['the bare prefix', ['x-auth-', 'x_auth_'], ['x-auth-', 'x_auth_']],
    ['each name once', ['x-auth-a', 'x_auth-a', 'x-auth-a'], ['x-auth-a', 'x_auth-a']],
    ['none of the five, which an allow sets', ['x-auth-uid', 'x-auth-iss'], []],
    ['none of their look-alikes, which it removes anyway', ['x_auth_uid', 'x-auth_role'], []],
    ['no shorter name', ['x-auth', 'x-aut', 'x', ''], []],
    ['no name of another prefix', ['x-authority', 'y-auth-a', 'xxauth-a', 'x-auth.a', 'a-x-auth-b'], []],
    ['no hyphen for a letter of the prefix', ['_-auth-a', 'x-_uth-a'], []],
    ['the longest name that a header may have', [`x-auth-${'a'.repeat(249)}`], [`x-auth-${'a'.repeat(249)}`]],
    ['no longer one', [`x-auth-${'a'.repeat(250)}`], []],
    ['what is no header name', ['x-auth-A', 'x-auth-a b', 'x-auth-a:', 'x-auth-\u00e9', 'x-auth-a\n'], []],
  ];
  for (const [name, shown, removed] of rows) {
    it(`remove ${name}`, () => {
      expect(createIdentityHeaders('x-auth-').shownToRemove(shown)).to.deep.equal(removed);
    });
  }

  it('read an underscore in the prefix as itself', () => {
    const { shownToRemove } = createIdentityHeaders('x_auth-');
    expect(shownToRemove(['x_auth-a', 'x_auth_a', 'x-auth-a'])).to.deep.equal(['x_auth-a', 'x_auth_a']);
  });
});
