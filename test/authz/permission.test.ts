// Which methods a role allows, and which roles of a token count.
import { expect } from 'chai';
import { compileRoles, configuredRoles, roleAllows } from '../../src/authz/role.ts';

describe('roles', () => {
  const roles = compileRoles({ owner: ['*', 'PROPFIND'], member: ['GET'] });
  const rows: readonly (readonly [role: string, method: string, allowed: boolean])[] = [
    ['owner', 'OPTIONS', true],
    ['owner', 'PROPFIND', true],
    ['owner', 'TRACE', false],
    ['owner', '*', false],
    ['member', 'GET', true],
    ['member', 'HEAD', false],
    ['nobody', 'GET', false],
    ['constructor', 'GET', false],
  ];
  for (const [role, method, allowed] of rows) {
    it(`${allowed ? 'allow' : 'do not allow'} ${method} for ${role}`, () => {
      expect(roleAllows(roles, role, method)).to.equal(allowed);
    });
  }

  it('configuredRoles keeps the configured roles of a token, in the order of the configuration', () => {
    const claimed = ['nobody', 'member', 'constructor', 'owner', 'OWNER', '__proto__'];
    expect(configuredRoles(roles, claimed)).to.deep.equal(['owner', 'member']);
    expect(configuredRoles(roles, ['nobody'])).to.deep.equal([]);
    expect(claimed[0]).to.equal('nobody');
  });
});
