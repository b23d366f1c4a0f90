// Settings of V8 that fit a service of this kind. Imported first by main.ts, for their effect: V8 takes the pace of its heap only while
// that is still small. docs/performance.md has the figures.
import { setFlagsFromString } from 'node:v8';

// V8 puts what a place in the code creates into the old generation from the start, once most of what that place created had outlived a
// collection of the young one, and seldom goes back on it. A moment of many calls under way suffices, or of a process that is starting:
// from then on each call left up to 8 KB there, of the 28 KB that it allocates.
setFlagsFromString('--no-allocation-site-pretenuring');

// What calls leave in the old generation stays until that is collected, with as much again outside the heap, and V8 lets it grow to four
// times what is alive first, tens of megabytes that never come back. A smaller step costs processor time and more pauses. It is a pace
// and no limit: a service that needs more gets more, where `--max-old-space-size` would end it.
setFlagsFromString('--heap-growing-percent=65');

// A young generation grows at once as far as it may, not by doubling: V8 begins a major collection when the old generation has no more
// room left than the young one takes (Heap::IncrementalMarkingLimitReached in its source), so that each doubling brings one forward, and a
// quiet service that meets a flood made three within it in the place of one.
setFlagsFromString('--semi-space-growth-factor=16');

// V8 drops the code of what was not called for a while, and the next calls are as slow as those of a new process: for a second, several
// times slower, just when a quiet service has to bear a flood.
setFlagsFromString('--no-flush-bytecode');
