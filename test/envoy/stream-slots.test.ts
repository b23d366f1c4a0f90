import { once } from 'node:events';
import http2, { type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect } from 'chai';
import fc from 'fast-check';
import { createSlotMap, createSlotSet, keepStreamsInSlots } from '../../src/envoy/stream-slots.ts';
import { collectGarbage } from '../support/garbage.ts';
import { areInSlots, openStreamsOf } from '../support/open-streams.ts';

describe('stream slots', () => {
  type Slots = Map<number, string | undefined>;
  const key = fc.integer({ min: 0, max: 5 });
  const setting = fc.tuple(key, fc.option(fc.string(), { nil: undefined }));
  const operation: fc.Arbitrary<(map: Slots) => unknown> = fc.oneof(
    setting.map(
      ([at, value]) =>
        (map: Slots) =>
          map.set(at, value) === map,
    ),
    key.map(at => (map: Slots) => map.get(at)),
    key.map(at => (map: Slots) => map.has(at)),
    key.map(at => (map: Slots) => map.delete(at)),
    fc.constant((map: Slots) => map.clear()),
  );

  type SlotSet = Set<number>;
  const setOperation: fc.Arbitrary<(set: SlotSet) => unknown> = fc.oneof(
    key.map(at => (set: SlotSet) => set.add(at) === set),
    key.map(at => (set: SlotSet) => set.has(at)),
    key.map(at => (set: SlotSet) => set.delete(at)),
    fc.constant((set: SlotSet) => set.clear()),
  );

  // Slots have no order.
  const sorted = (of: Iterable<unknown>): readonly string[] => Array.from(of, each => JSON.stringify([each])).sort();

  function outcome<Of extends Slots | SlotSet>(of: Of, act: (of: Of) => unknown): unknown {
    const result = act(of);
    const seen: unknown[] = [];
    of.forEach((value: unknown, at: number, self: unknown) => {
      seen.push([value, at, self === of]);
    });
    const { size, [Symbol.toStringTag]: tag } = of;
    const [all, keys, values, entries] = [of, of.keys(), of.values(), of.entries()].map(sorted);
    return { result, size, tag, all, keys, values, entries, seen: sorted(seen) };
  }

  it('are a Map, whatever is done to them', () => {
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 30 }), operations => {
        const slots = createSlotMap<number, string | undefined>();
        const plain = new Map<number, string | undefined>();
        for (const each of operations) expect(outcome(slots, each)).to.deep.equal(outcome(plain, each));
      }),
    );
  });

  it('are a Set, whatever is done to them', () => {
    fc.assert(
      fc.property(fc.array(setOperation, { maxLength: 30 }), operations => {
        const slots = createSlotSet<number>();
        const plain = new Set<number>();
        for (const each of operations) expect(outcome(slots, each)).to.deep.equal(outcome(plain, each));
      }),
    );
  });

  it('can be emptied while they are gone through', () => {
    const slots = createSlotMap<number, string>().set(1, 'a').set(2, 'b').set(3, 'c');
    const seen: string[] = [];
    slots.forEach((value, at) => {
      seen.push(value);
      slots.delete(at);
      slots.delete(2);
    });
    expect(seen).to.deep.equal(['a', 'c']);
    expect(slots.size).to.equal(0);
  });

  it('keep nothing of a deleted entry', async () => {
    const slots = createSlotMap<number, object>();
    const deleted = (() => {
      const value = {};
      slots.set(1, value).delete(1);
      return new WeakRef(value);
    })();
    await nextTurn();
    collectGarbage();
    expect(deleted.deref()).to.equal(undefined);
    expect(slots.size).to.equal(0);
  });

  it('take no more room than was needed at once', () => {
    const slots = createSlotMap<number, string>().set(0, 'a');
    collectGarbage();
    const { heapUsed } = process.memoryUsage();
    for (let i = 1; i <= 500_000; i += 1) slots.set(i, 'a').delete(i - 1);
    collectGarbage();
    expect(process.memoryUsage().heapUsed - heapUsed).to.be.below(1_000_000);
    expect(slots.size).to.equal(1);
  });

  it('leave an object alone that keeps no streams, or has some already', () => {
    const streams = new Map([[1, 'open']]);
    const pendingStreams = new Set(['open']);
    for (const state of [undefined, {}, { streams: {} }, { streams: new Set() }, { streams }, { pendingStreams }]) {
      const each = { [Symbol('state')]: state };
      const before = structuredClone(state);
      keepStreamsInSlots(each);
      expect(Reflect.ownKeys(each).map(name => Reflect.get(each, name))).to.deep.equal([before]);
    }
    const without = {};
    keepStreamsInSlots(without);
    expect(Reflect.ownKeys(without)).to.deep.equal([]);
  });

  describe('of a connection', () => {
    const server = http2.createServer();
    server.on('session', keepStreamsInSlots);
    server.on('stream', (stream, headers) => {
      if (headers[':path'] === '/held') return;
      stream.respond();
      stream.end(headers[':path']);
    });
    before(done => {
      server.listen(0, '127.0.0.1', done);
    });
    after(done => {
      server.close(done);
    });

    async function connected(): Promise<{ client: http2.ClientHttp2Session; session: ServerHttp2Session }> {
      const client = http2.connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
      const [session]: ServerHttp2Session[] = await once(server, 'session');
      if (session === undefined) throw new Error('no session');
      return { client, session };
    }

    it('hold the open ones and no closed one', async () => {
      const { client, session } = await connected();
      const streams = openStreamsOf(session);
      const held = client.request({ ':path': '/held' });
      const [stream]: ServerHttp2Stream[] = await once(server, 'stream');
      for (let i = 0; i < 20; i += 1) {
        const call = client.request({ ':path': `/${i}` }).setEncoding('utf8');
        const closed = once(server, 'stream').then(([each]: ServerHttp2Stream[]) => each && once(each, 'close'));
        expect(await call.toArray()).to.deep.equal([`/${i}`]);
        await closed;
      }
      expect([...streams]).to.deep.equal([[stream?.id, stream]]);
      expect(areInSlots(session)).to.equal(true);
      held.close();
      if (stream !== undefined) await once(stream, 'close');
      expect(streams.size).to.equal(0);
      client.destroy();
    });

    it('are all closed with their connection', async () => {
      const { client, session } = await connected();
      const opened: ServerHttp2Stream[] = [];
      session.on('stream', stream => opened.push(stream));
      const calls = Array.from({ length: 5 }, () => client.request({ ':path': '/held' }).on('error', () => undefined));
      while (opened.length < calls.length) await once(session, 'stream');
      session.destroy();
      await once(session, 'close');
      expect(opened.map(({ destroyed }) => destroyed)).to.deep.equal([true, true, true, true, true]);
      expect(openStreamsOf(session).size).to.equal(0);
      client.destroy();
    });
  });
});
