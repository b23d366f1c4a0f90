// When two tokens of a provider have the same shape.
import { expect } from 'chai';
import { shapeDifferences } from '../../../tools/providers/fixture.ts';

const token = (claims: Readonly<Record<string, unknown>>) => ({ header: { alg: 'RS256' }, claims });

describe('the shape of a token', () => {
  it('does not depend on values, on the order of members or on the length of a list', () => {
    const one = token({ sub: 'a', exp: 1, realm_access: { roles: ['x'] } });
    const other = token({ realm_access: { roles: ['y', 'z'] }, exp: 2, sub: 'b' });
    expect(shapeDifferences(one, other)).to.deep.equal([]);
  });

  it('differs if a member is added, removed or has another type', () => {
    const differences = shapeDifferences(token({ aud: ['x'], sub: 'a' }), token({ aud: 'x', acc: 'b', sub: 'a' }));
    expect(differences).to.have.members(['/claims/aud[]: string', '/claims/aud: string', '/claims/acc: string']);
  });
});
