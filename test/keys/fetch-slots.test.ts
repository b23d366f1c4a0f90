// The limit of fetches in flight: how many run, whose turn it is, and who can be kept waiting.
import { expect } from 'chai';
import { createDeferred } from '../../src/deferred.ts';
import { createFetchSlots } from '../../src/keys/fetch-slots.ts';

const settled = (): Promise<void> => new Promise(resolve => setImmediate(resolve));

/** Fetches that run until they are ended. */
function lab() {
  const slots = createFetchSlots();
  const running: { readonly host: string; readonly end: () => void }[] = [];
  const begun: string[] = [];
  const begin = (host: string, { isRetry = false, signal = new AbortController().signal } = {}) =>
    slots.run({ host, isRetry, signal }, async () => {
      const ended = createDeferred<void>();
      const fetch = { host, end: ended.resolve };
      running.push(fetch);
      begun.push(host);
      await ended.promise;
      running.splice(running.indexOf(fetch), 1);
      return host;
    });
  const endOne = async (host?: string): Promise<void> => {
    running.find(fetch => host === undefined || fetch.host === host)?.end();
    await settled();
  };
  return { begin, running, begun, endOne };
}

const times = (count: number, action: (i: number) => unknown): void => {
  for (let i = 0; i < count; i++) action(i);
};

describe('fetch slots', () => {
  it('give the result of the work', async () => {
    const { begin, endOne } = lab();
    const work = begin('a');
    await settled();
    await endOne();
    expect(await work).to.equal('a');
  });

  it('are eight, and every fetch gets one in the end', async () => {
    const { begin, running, begun, endOne } = lab();
    times(100, i => begin(`host ${i}`));
    await settled();
    while (running.length > 0) {
      expect(running).to.have.length.of.at.most(8);
      if (begun.length < 100) expect(running).to.have.length(8);
      await endOne();
    }
    expect(new Set(begun)).to.have.property('size', 100);
  });

  it('are free again when the work fails', async () => {
    const slots = createFetchSlots();
    const fail = (i: number) =>
      slots
        .run({ host: `host ${i}`, isRetry: false, signal: new AbortController().signal }, () =>
          Promise.reject(new Error('failed')),
        )
        .catch((error: Error) => error.message);
    expect(await Promise.all(Array.from({ length: 20 }, (_, i) => fail(i)))).to.deep.equal(Array(20).fill('failed'));
  });

  it('leave half to the others while a host with many sources hangs', async () => {
    const { begin, running } = lab();
    times(100, () => begin('hangs'));
    begin('other');
    await settled();
    expect(running.map(({ host }) => host)).to.deep.equal([...Array(4).fill('hangs'), 'other']);
  });

  it('leave half to the others while failing sources hang', async () => {
    const { begin, running } = lab();
    times(100, i => begin(`fails ${i}`, { isRetry: true }));
    begin('good');
    await settled();
    expect(running).to.have.length(5);
    expect(running.at(-1)?.host).to.equal('good');
  });

  it('go to a source that did not fail before one that did', async () => {
    const { begin, begun, endOne } = lab();
    times(8, i => begin(`busy ${i}`));
    begin('failed', { isRetry: true });
    begin('good');
    await settled();
    await endOne();
    expect(begun.at(-1)).to.equal('good');
    await endOne();
    expect(begun.at(-1)).to.equal('failed');
  });

  it('go round the hosts, however many sources one of them has', async () => {
    const { begin, begun, endOne } = lab();
    times(8, i => begin(`busy ${i}`));
    times(3, () => begin('large'));
    begin('small');
    begin('small');
    await settled();
    for (let ended = 0; ended < 8; ended++) await endOne(`busy ${ended}`);
    expect(begun.slice(8)).to.deep.equal(['large', 'small', 'large', 'small', 'large']);
  });

  it('are not taken by a fetch that is aborted while it waits', async () => {
    const { begin, begun, endOne } = lab();
    times(8, i => begin(`busy ${i}`));
    const aborting = new AbortController();
    const aborted = begin('aborted', { signal: aborting.signal });
    const next = begin('next');
    aborting.abort();
    expect(await aborted).to.equal(undefined);
    await endOne();
    expect(begun.at(-1)).to.equal('next');
    await endOne('next');
    expect(await next).to.equal('next');
    expect(await begin('gone', { signal: AbortSignal.abort() })).to.equal(undefined);
  });
});
