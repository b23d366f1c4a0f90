import { expect } from 'chai';
import { compileRoles, configuredRoles, roleAllows } from '../../src/authz/role.ts';

describe('role', () => {
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
    it(`${allowed ? 'lets' : 'does not let'} ${role} use ${method}`, () => {
      expect(roleAllows(roles, role, method)).to.equal(allowed);
    });
  }

  it('counts of a list in the order of the configuration, if it is configured', () => {
    const claimed = ['nobody', 'member', 'constructor', 'owner', 'OWNER', '__proto__'];
    expect(configuredRoles(roles, claimed)).to.deep.equal(['owner', 'member']);
    expect(configuredRoles(roles, ['nobody'])).to.deep.equal([]);
    expect(claimed[0]).to.equal('nobody');
  });
});
