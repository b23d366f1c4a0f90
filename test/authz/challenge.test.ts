// What a refused client is told: which scopes would do, and on which routes the metadata of the protected resource counts.
import { expect } from 'chai';
import { admit, authorize } from '../../src/authz/authorize.ts';
import { challenged } from '../../src/authz/challenge.ts';
import { type Reason, type Refusal, refusalAnswers } from '../../src/authz/refusal.ts';
import { facts, identity, policy, route } from '../support/facts.ts';

type Changes = NonNullable<Parameters<typeof policy>[0]>;

const routes = [route('/a/*'), { ...route('/a/bills'), scopes: ['billing', 'all'] }, route('/b/:account_id')];
const scopes = { read: ['GET', 'HEAD'], billing: ['GET', 'POST'], all: ['*'] };

/** The hint of this reason for a request. */
function hintOf(reason: Reason, target: string, changes: Changes = {}, method = 'GET'): Refusal['hint'] {
  const rules = policy({ routes, scopes, ...changes });
  const { outcome } = admit(rules, facts({ target, method }));
  if (outcome.kind === 'refusal') throw new Error(outcome.detail);
  return challenged(rules, outcome, { kind: 'refusal', reason, detail: '' }).hint;
}

describe('a challenge', () => {
  const initial = { path: '/a', scopes: new Set(['read', 'all']) };
  const rows: readonly (readonly [name: string, args: Parameters<typeof hintOf>, names: readonly string[]])[] = [
    ['each that would do', ['token_missing', '/a/x'], ['read', 'billing', 'all']],
    ['what the method leaves', ['token_expired', '/a/x', {}, 'POST'], ['billing', 'all']],
    ['what the routes leave', ['token_invalid', '/a/bills'], ['billing', 'all']],
    ['none without scopes', ['token_revoked', '/a/x', { scopes: undefined }], []],
    ['none where none would do', ['token_missing', '/a/x', {}, 'TRACE'], []],
    ['those to begin with', ['token_missing', '/a/x', { resource: initial }], ['read', 'all']],
    ['those to begin with that would do', ['token_invalid', '/a/bills', { resource: initial }], ['all']],
    [
      'the others where none of them would do',
      ['token_missing', '/a/x', { resource: { ...initial, scopes: new Set(['x']) } }],
      ['read', 'billing', 'all'],
    ],
    [
      'each that would do to a token without one',
      ['scope_forbidden', '/a/x', { resource: initial }],
      ['read', 'billing', 'all'],
    ],
    [
      'at most ten',
      [
        'token_missing',
        '/a/x',
        { scopes: Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`s${i}`, ['*']])), routes: [route('/a/*')] },
      ],
      Array.from({ length: 10 }, (_, i) => `s${i}`),
    ],
  ];
  for (const [name, args, names] of rows) {
    it(`names ${name}`, () => expect(hintOf(...args)?.scopes).to.deep.equal(names));
  }

  it('is of the resource on the routes under its path alone, by whole segments', () => {
    const isOf = (path: string, target: string) =>
      hintOf('token_missing', target, { resource: { path, scopes: undefined } })?.isOfResource;
    expect(['', '/', '/a', '/a/', '/a/bills', '/b', '/a/bil'].map(path => isOf(path, '/a/bills'))).to.deep.equal([
      true,
      true,
      true,
      true,
      true,
      false,
      false,
    ]);
    expect(['/a/x', '/A', '/a/b'].map(path => isOf(path, '/a/x'))).to.deep.equal([false, false, false]);
    expect(['/b', '/b/acct1', '/'].map(path => isOf(path, '/b/acct1'))).to.deep.equal([true, false, true]);
    expect(hintOf('token_missing', '/a/x')?.isOfResource).to.equal(false);
  });

  it('is given with the refusal of a request without a token, and of one whose scopes do not do', () => {
    const rules = policy({ routes, scopes });
    const without = admit(rules, facts({ target: '/a/x', headers: { authorization: [] } })).outcome;
    expect(without).to.have.nested.property('hint.scopes').with.lengthOf(3);
    const { outcome } = admit(rules, facts({ target: '/a/x' }));
    if (outcome.kind === 'refusal') throw new Error(outcome.detail);
    expect(authorize(rules, outcome, identity(), () => undefined).decision).to.include({ reason: 'scope_forbidden' });
  });

  it('has a hint with 401 and scope_forbidden alone', () => {
    const hinted = (Object.keys(refusalAnswers) as Reason[]).filter(reason => hintOf(reason, '/a/x') !== undefined);
    expect(hinted).to.deep.equal('token_missing token_invalid token_expired token_revoked scope_forbidden'.split(' '));
  });
});
