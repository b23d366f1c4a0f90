// How far the heap may grow between two collections. Imported first by main.ts, for its effect: V8 takes this pace only while its
// heap is still small.
import { setFlagsFromString } from 'node:v8';

// The objects of an HTTP/2 stream outlive the collections of the young generation, so each call leaves a kilobyte or two in the old
// one until that is collected. V8 lets it grow to four times what is alive first, tens of megabytes that never come back. A smaller
// step costs processor time: docs/performance.md has the figures. It is a pace and no limit: a service that needs more gets
// more, where `--max-old-space-size` would end it.
setFlagsFromString('--heap-growing-percent=60');
