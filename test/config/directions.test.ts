// Every setting has a direction, so that `compare` can say what a change of it does.
import { expect } from 'chai';
import { directionOf } from '../../src/config/directions.ts';
import { toJsonSchema } from '../../src/config/schema.ts';
import { isJsonObject, itemsOf, memberOf } from '../../src/json/strict-json.ts';

/** The paths of all settings that have no members of their own. */
function leavesOf(schema: unknown, path = ''): readonly string[] {
  const forms = [...itemsOf(memberOf(schema, 'anyOf')), ...itemsOf(memberOf(schema, 'allOf')), schema];
  const below = forms.flatMap(form => {
    const properties = memberOf(form, 'properties');
    const members = isJsonObject(properties) ? Object.entries(properties) : [];
    const items = memberOf(form, 'items');
    const ofItems = isJsonObject(items) && leavesOf(items, `${path}[]`).some(leaf => leaf !== `${path}[]`);
    return [
      ...members.flatMap(([name, member]) => leavesOf(member, path === '' ? name : `${path}.${name}`)),
      ...(ofItems ? leavesOf(items, `${path}[]`) : []),
    ];
  });
  return below.length === 0 ? [path] : [...new Set(below)];
}

describe('directions', () => {
  const leaves = leavesOf(toJsonSchema());

  it('has a direction for every setting of the schema', () => {
    const some = ['issuers[].claims.role.keysOf', 'routes[].path', 'keys.maxAgeSeconds', 'listen'];
    expect(leaves).to.include.members(some);
    expect(leaves.filter(leaf => directionOf(leaf) === undefined)).to.deep.equal([]);
  });

  it('has none for what is no setting', () => {
    expect(['nothing', 'keys.nothing', 'issuers[].nothing', 'tlsNothing'].map(directionOf)).to.deep.equal([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });
});
