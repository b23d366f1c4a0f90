// Settings of V8 that fit a service of this kind. Imported first by main.ts, for their effect: V8 takes the pace of its heap only while
// that is still small. docs/performance.md has the figures.
import { setFlagsFromString } from 'node:v8';

// The objects of an HTTP/2 stream outlive the collections of the young generation, so each call leaves a kilobyte or more in the old
// one until that is collected. V8 lets it grow to four times what is alive first, tens of megabytes that never come back. A smaller
// step costs processor time and more pauses. It is a pace and no limit: a service that needs more gets more, where
// `--max-old-space-size` would end it.
setFlagsFromString('--heap-growing-percent=60');

// V8 drops the code of what was not called for a while, and the next calls are as slow as those of a new process: for a second, several
// times slower, just when a quiet service has to bear a flood.
setFlagsFromString('--no-flush-bytecode');
