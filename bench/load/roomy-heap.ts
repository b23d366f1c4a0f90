/**
 * Flags of Node for a load: one that collects its garbage on several threads takes cores from what it measures, and one that pauses for it
 * sends late. This one does it on its own thread, seldom, and never all of it, nor because it had a quiet moment (V8's memory reducer,
 * which comes seconds after a busy one). The bench beside it has the last two flags too (package.json), since it shares the core of the load.
 */
export const roomyHeap: readonly string[] = [
  '--single-threaded-gc',
  '--min-semi-space-size=32',
  '--max-semi-space-size=32',
  '--initial-old-space-size=512',
  '--no-memory-reducer',
];
