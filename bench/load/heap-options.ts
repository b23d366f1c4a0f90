// Node flags for a load process: parallel garbage collection takes CPU from the measured process, and a long pause delays requests. With
// these flags V8 collects on the main thread, seldom, never the whole heap, and not when idle either (V8's memory reducer,
// which starts seconds after a busy phase). The bench process, which shares its core, has the last two flags too (package.json).

export const loadHeapOptions: readonly string[] = [
  '--single-threaded-gc',
  '--min-semi-space-size=32',
  '--max-semi-space-size=32',
  '--initial-old-space-size=512',
  '--no-memory-reducer',
];
