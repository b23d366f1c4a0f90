// What a fetch for several issuers of one source means for the state machine, and the answers that an issuer takes from it.
import { expect } from 'chai';
import type { VerificationKey } from '../../src/keys/jwks.ts';
import {
  afterFetch,
  mergeKeys,
  noKeys,
  type SelectedKeys,
  type SelectionResult,
  selectKeys,
  toFetchEnd,
  withoutKey,
} from '../../src/keys/key-selection.ts';
import type { SourceResult } from '../../src/keys/key-source.ts';

const key = (kid: string): VerificationKey => ({ kid, thumbprint: kid, cryptoKeyFor: () => undefined });
const set = (...kids: readonly string[]): SelectedKeys => ({
  ...noKeys,
  keys: new Map(kids.map(kid => [kid, key(kid)])),
});
const problem = (text: string): SelectionResult => ({ kind: 'problem', problem: text });
const notModified: SelectionResult = { kind: 'notModified' };
const keySet: SelectionResult = { kind: 'keySet', keys: new Map(), publicJwks: [], skipped: [] };

describe('keys of several selections', () => {
  it('are merged for the state machine', () => {
    expect([...mergeKeys([set('a', 'b'), set(), set('c')]).keys()]).to.deep.equal(['a', 'b', 'c']);
  });

  it('stay the same map for a single selection', () => {
    const only = set('a');
    expect(mergeKeys([only])).to.equal(only.keys);
  });

  const ends: readonly (readonly [name: string, results: readonly SelectionResult[], kind: string])[] = [
    ['one key set', [keySet], 'fetched'],
    ['a key set and a problem', [problem('no usable key'), keySet], 'fetched'],
    ['a key set and an unchanged set', [notModified, keySet], 'fetched'],
    ['an unchanged set', [notModified], 'notModified'],
    ['an unchanged set and a problem', [problem('no usable key'), notModified], 'notModified'],
    ['problems alone', [problem('status 500'), problem('status 500')], 'failed'],
  ];
  for (const [name, results, kind] of ends) {
    it(`end a fetch as ${kind} with ${name}`, () => {
      expect(toFetchEnd(results, [set('a'), set('b')]).kind).to.equal(kind);
    });
  }

  it('report all keys after a fetch, and the first problem of a failed one', () => {
    const fetched = toFetchEnd([keySet, notModified], [set('a'), set('b')]);
    expect(fetched.kind === 'fetched' && [...fetched.keys.keys()]).to.deep.equal(['a', 'b']);
    expect(toFetchEnd([problem('one'), problem('two')], [set(), set()])).to.include({ problem: 'one' });
  });
});

describe('the keys of a selection after a fetch', () => {
  const selection = { id: 'only', issuers: ['https://a.test'], algorithms: ['ES256'] };

  it('have the problem of this fetch, not the one of the document that was kept', async () => {
    const problems = { now: 'status 500', kept: 'no usable key' } as const;
    const kept = { kind: 'problem', problem: problems.kept } as const;
    const select = (result: SourceResult) => selectKeys(result, selection, noKeys, kept);
    expect(await select({ kind: 'problem', problem: problems.now })).to.include({ problem: problems.now });
    expect(await select({ kind: 'notModified', anchors: [] })).to.equal(kept);
  });

  it('are none if nothing was fetched yet', () => {
    expect(afterFetch(noKeys, { kind: 'notModified' }, 7)).to.deep.equal({
      keys: new Map(),
      publicJwks: [],
      confirmedMs: 7,
      lastResult: 'success',
      lastProblem: undefined,
    });
  });
});

describe('the answer for a kid that a selection does not have', () => {
  it('is unknown while the last refresh succeeded', () => {
    expect(withoutKey({ kind: 'key', key: key('a') }, set('b'))).to.deep.equal({ kind: 'unknown' });
    expect(withoutKey({ kind: 'unknown' }, set('b'))).to.deep.equal({ kind: 'unknown' });
  });

  it('is unavailable if the state machine says so', () => {
    const unavailable = { kind: 'unavailable', detail: 'no key set yet, last refresh: status 500' } as const;
    expect(withoutKey(unavailable, set('b'))).to.equal(unavailable);
  });

  it('is unavailable with the last problem of the selection', () => {
    const failed = { ...set('b'), lastProblem: 'no usable key' } as const;
    const answer = (selected: SelectedKeys) => withoutKey({ kind: 'unknown' }, selected);
    expect(answer(failed)).to.deep.include({ detail: 'no key set yet, last refresh: no usable key' });
    expect(answer({ ...failed, confirmedMs: 0 })).to.deep.include({
      detail: 'kid not in the key set, last refresh: no usable key',
    });
  });
});
