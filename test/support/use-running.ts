// Starts something before the tests of the describe around it, and stops it after them.

interface Running {
  stop(): unknown;
}

/** Stands for what `start` resolves with, from the first test on. */
export function useRunning<Started extends Running>(start: () => Promise<Started>): Started {
  let running: Started | undefined;
  before(async function () {
    // The first run installs Envoys, a browser or kustomize.
    this.timeout(300_000);
    running = await start();
  });
  after(() => running?.stop());
  return new Proxy({} as Started, { get: (_, name) => Reflect.get(running ?? {}, name) });
}
