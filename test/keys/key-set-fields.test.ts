// What the state of a key set holds beside the keys: pending work, kids known absent, the detail for the log; and results that come late.
import { expect } from 'chai';
import { answerNow, type KeySetEvent } from '../../src/keys/key-set-machine.ts';
import { keySet, loaded, type Machine, machine, started, trace } from './key-set-trace.ts';

describe('fields of a key set state', () => {
  describe('negative cache', () => {
    it('makes room for newer kids beyond maxUnknownKids', () => {
      const driven = loaded({ maxUnknownKids: 2 });
      for (const [askedMs, kids] of [
        [6_000, ['a', 'b']],
        [20_000, ['c', 'd']],
      ] as const) {
        for (const kid of kids) driven.ask(askedMs, kid);
        driven.fetched(askedMs + 100, keySet('k1'));
        driven.wake(askedMs + 6_000);
        driven.fetched(askedMs + 6_100, keySet('k1'));
      }
      expect(driven.state().knownAbsent.size).to.equal(2);
    });

    it('K-011 loses a kid once a fetch returns it', () => {
      const driven = trace(loaded(), '5_100 ask k2 → fetch\n5_200 fetched k1 → k2: unknown');
      expect([...driven.state().knownAbsent]).to.deep.equal(['k2']);
      trace(driven, '300_000 woken → fetch\n300_100 fetched k2');
      expect([...driven.state().knownAbsent]).to.deep.equal([]);
    });
  });

  describe('detail for the log', () => {
    const seeded = trace(machine(), '0 seed 0 k1');
    const failing = (atMs: number) => trace(loaded(), `${atMs} woken → fetch\n${atMs + 100} fails`);
    const rows: readonly (readonly [detail: string, at: Machine, nowMs: number])[] = [
      ['no key set yet', machine(), 0],
      ['no key set yet, last refresh: status 500', trace(started(), '10 fails'), 11],
      ['no key set yet, last refresh: status 304', trace(started(), '10 unmodified'), 11],
      ['key set too old', seeded, 3_600_000],
      ['key set too old, last refresh: status 500', failing(3_700_000), 3_700_101],
      ['kid not in the key set', seeded, 1],
      ['kid not in the key set, last refresh: status 500', failing(300_000), 300_101],
      ['stopped', trace(loaded(), '200 stopped'), 201],
    ];
    for (const [detail, at, nowMs] of rows) {
      it(`is "${detail}"`, () => {
        expect(answerNow(at.state(), 'k2', nowMs)).to.deep.equal({ kind: 'unavailable', detail });
      });
    }
  });

  describe('late result', () => {
    it('K-053 of an earlier fetch changes nothing', () => {
      const driven = trace(loaded(), '300_000 woken → fetch');
      const before = driven.state();
      const late: readonly KeySetEvent[] = [
        { kind: 'fetched', fetch: 1, set: keySet('old'), jitter: 0 },
        { kind: 'failed', fetch: 1, problem: 'late', jitter: 0 },
        { kind: 'notModified', fetch: 1, jitter: 0 },
      ];
      for (const event of late) {
        expect(driven.send(event, 300_050)).to.deep.equal([]);
        expect(driven.state()).to.equal(before);
      }
    });

    it('K-054 after the stop changes nothing', () => {
      trace(started(), '10 stopped → abort\n20 fetched k1; uses');
    });
  });
});
