// The limit of fetches in flight: how many run, in which order, and how much of it one host or failing sources can take.
import { getEventListeners } from 'node:events';
import { expect } from 'chai';
import { createDeferred } from '../../src/keys/deferred.ts';
import { createFetchSlots } from '../../src/keys/fetch-slots.ts';

const settled = (): Promise<void> => new Promise(resolve => setImmediate(resolve));

/** Slots whose fetches run until a test ends them. */
function lab() {
  const slots = createFetchSlots();
  const running: { readonly host: string; readonly end: () => void }[] = [];
  const started: string[] = [];
  const start = (host: string, { isRetry = false, signal = new AbortController().signal } = {}) =>
    slots.run({ host, isRetry, signal }, async () => {
      const ended = createDeferred<void>();
      const fetch = { host, end: ended.resolve };
      running.push(fetch);
      started.push(host);
      await ended.promise;
      running.splice(running.indexOf(fetch), 1);
      return host;
    });
  const endOne = async (host?: string): Promise<void> => {
    running.find(fetch => host === undefined || fetch.host === host)?.end();
    await settled();
  };
  return { start, running, started, endOne };
}

const times = (count: number, action: (i: number) => unknown): void => {
  for (let i = 0; i < count; i++) action(i);
};

describe('fetch slots', () => {
  it('return the result of the fetch', async () => {
    const { start, endOne } = lab();
    const work = start('a');
    await settled();
    await endOne();
    expect(await work).to.equal('a');
  });

  it('limit the fetches in flight to eight, and each of a hundred gets its turn', async () => {
    const { start, running, started, endOne } = lab();
    times(100, i => start(`host ${i}`));
    await settled();
    while (running.length > 0) {
      expect(running).to.have.length.of.at.most(8);
      if (started.length < 100) expect(running).to.have.length(8);
      await endOne();
    }
    expect(new Set(started)).to.have.property('size', 100);
  });

  it('are released when a fetch fails', async () => {
    const slots = createFetchSlots();
    const fail = (i: number) =>
      slots
        .run({ host: `host ${i}`, isRetry: false, signal: new AbortController().signal }, () =>
          Promise.reject(new Error('failed')),
        )
        .catch((error: Error) => error.message);
    expect(await Promise.all(Array.from({ length: 20 }, (_, i) => fail(i)))).to.deep.equal(Array(20).fill('failed'));
  });

  it('limit a host that hangs to half of them', async () => {
    const { start, running } = lab();
    times(100, () => start('hangs'));
    start('other');
    await settled();
    expect(running.map(({ host }) => host)).to.deep.equal([...Array(4).fill('hangs'), 'other']);
  });

  it('limit retries of failing sources to half of them', async () => {
    const { start, running } = lab();
    times(100, i => start(`fails ${i}`, { isRetry: true }));
    start('good');
    await settled();
    expect(running).to.have.length(5);
    expect(running.at(-1)?.host).to.equal('good');
  });

  it('prefer a source that has not failed to a retry', async () => {
    const { start, started, endOne } = lab();
    times(8, i => start(`busy ${i}`));
    start('failed', { isRetry: true });
    start('good');
    await settled();
    await endOne();
    expect(started.at(-1)).to.equal('good');
    await endOne();
    expect(started.at(-1)).to.equal('failed');
  });

  it('alternate between hosts, however many sources one of them has', async () => {
    const { start, started, endOne } = lab();
    times(8, i => start(`busy ${i}`));
    times(3, () => start('large'));
    start('small');
    start('small');
    await settled();
    for (let ended = 0; ended < 8; ended++) await endOne(`busy ${ended}`);
    expect(started.slice(8)).to.deep.equal(['large', 'small', 'large', 'small', 'large']);
  });

  it('give a host no earlier turn because it had one before', async () => {
    const { start, started, endOne } = lab();
    times(8, i => start(`busy ${i}`));
    start('before');
    await settled();
    await endOne('busy 0');
    start('waiting');
    start('before');
    await settled();
    await endOne('busy 1');
    await endOne('busy 2');
    expect(started.slice(8)).to.deep.equal(['before', 'waiting', 'before']);
  });

  it('are kept by a fetch that is aborted as it starts, which ends by its own signal', async () => {
    const { start, endOne } = lab();
    const aborting = new AbortController();
    const { signal } = aborting;
    const fetched = start('a', { signal });
    aborting.abort();
    await settled();
    await endOne();
    expect(await fetched).to.equal('a');
    expect(getEventListeners(signal, 'abort')).to.deep.equal([]);
  });

  it('are not used by a fetch that is aborted while it waits', async () => {
    const { start, started, endOne } = lab();
    times(8, i => start(`busy ${i}`));
    const aborting = new AbortController();
    const aborted = start('aborted', { signal: aborting.signal });
    const next = start('next');
    aborting.abort();
    expect(await aborted).to.equal(undefined);
    await endOne();
    expect(started.at(-1)).to.equal('next');
    await endOne('next');
    expect(await next).to.equal('next');
    expect(await start('gone', { signal: AbortSignal.abort() })).to.equal(undefined);
  });
});
