// The names of the identity headers, their look-alikes, and which request headers under the prefix are removed.
import { expect } from 'chai';
import { createIdentityHeaders } from '../../src/headers/headers.ts';

describe('identity headers', () => {
  it('are named by the prefix and a field, in the order of the fields', () => {
    expect([...createIdentityHeaders('x-').names]).to.deep.equal([
      ['uid', 'x-uid'],
      ['app', 'x-app'],
      ['acc', 'x-acc'],
      ['role', 'x-role'],
      ['iss', 'x-iss'],
      ['actor', 'x-actor'],
    ]);
  });

  it('have look-alikes for every hyphen of a longer prefix', () => {
    const { lookAlikes } = createIdentityHeaders('x-a-b-');
    expect(lookAlikes).to.have.lengthOf(6 * 7);
    expect(lookAlikes).to.include.members(['x_a-b-uid', 'x-a_b_uid', 'x_a_b_uid']);
    expect(lookAlikes).to.not.include('x-a-b-uid');
  });

  it('of forwardClaims are owned like the six', () => {
    const { all, forwarded, lookAlikes, strayNames } = createIdentityHeaders('x-a-', {
      'e-mail': 'email',
      plan: '/plan',
    });
    expect(forwarded).to.deep.equal(['x-a-e-mail', 'x-a-plan']);
    expect(all.slice(-3)).to.deep.equal(['x-a-actor', ...forwarded]);
    expect(lookAlikes).to.have.lengthOf(6 * 3 + 7 + 3);
    expect(lookAlikes).to.include.members(['x-a-e_mail', 'x_a_e_mail', 'x_a-plan']);
    expect(strayNames(['x-a-plan', 'x_a_plan', 'x-a-other'])).to.deep.equal(['x-a-other']);
  });

  const rows: readonly (readonly [name: string, shown: readonly string[], removed: readonly string[]])[] = [
    ['remove nothing when the request has no headers', [], []],
    ['remove another name under the prefix', ['x-auth-email'], ['x-auth-email']],
    ['remove the bare prefix', ['x-auth-', 'x_auth_'], ['x-auth-', 'x_auth_']],
    ['remove each name once', ['x-auth-a', 'x_auth-a', 'x-auth-a'], ['x-auth-a', 'x_auth-a']],
    ['do not remove the names that an allow sets', ['x-auth-uid', 'x-auth-iss'], []],
    ['do not repeat the look-alikes, which are always removed', ['x_auth_uid', 'x-auth_role'], []],
    ['do not remove a shorter name', ['x-auth', 'x-aut', 'x', ''], []],
    ['do not remove a name with another prefix', ['x-authority', 'y-auth-a', 'xxauth-a', 'x-auth.a', 'a-x-auth-b'], []],
    ['do not treat a letter of the prefix as a separator', ['_-auth-a', 'x-_uth-a'], []],
    ['remove a name of any length', [`x-auth-${'a'.repeat(9000)}`], [`x-auth-${'a'.repeat(9000)}`]],
    ['do not remove invalid header names', ['x-auth-A', 'x-auth-a b', 'x-auth-a:', 'x-auth-\u00e9', 'x-auth-a\n'], []],
  ];
  for (const [name, received, removed] of rows) {
    it(name, () => {
      expect(createIdentityHeaders('x-auth-').strayNames(received)).to.deep.equal(removed);
    });
  }

  it('match an underscore in the prefix only with an underscore', () => {
    const { strayNames } = createIdentityHeaders('x_auth-');
    expect(strayNames(['x_auth-a', 'x_auth_a', 'x-auth-a'])).to.deep.equal(['x_auth-a', 'x_auth_a']);
  });
});
