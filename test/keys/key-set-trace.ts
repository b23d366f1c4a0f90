// The state machine of a key set as a test drives it: event by event, or by a trace of lines such as
//
//   5_100 ask k2 → fetch
//   5_200 fetched k1 k2 → k2: key; due 240_000
//
// A line has the monotonic time in ms, an event (or `look` for none), after the arrow all that it must lead to (without an arrow: nothing): a
// fetch, its end, the answers for unknown kids, which wait while a fetch is in flight. After the semicolon is what must hold then:
// `due MS` (the next wake-up, or `never`), `uses KID…` (all usable keys), `failed`.
import { expect } from 'chai';
import { isUsable, nextWakeMs } from '../../src/http/document-machine.ts';
import type { VerificationKey } from '../../src/keys/jwks.ts';
import {
  answerNow,
  createKeySetState,
  type KeySetEvent,
  type KeySetLimits,
  type Keys,
  reduce,
} from '../../src/keys/key-set-machine.ts';

export const limits: KeySetLimits = {
  refreshMs: 300_000,
  maxAgeMs: 3_600_000,
  cooldownMs: 5_000,
  maxRetryMs: 15_000,
  maxEarlyMs: 60_000,
  quietMs: 600_000,
  maxUnknownKids: 4,
};

export type Machine = ReturnType<typeof machine>;

const made = new Map<string, VerificationKey>();

/** The same object for the same kid and thumbprint, as a refresh keeps it. */
function key(kid: string, thumbprint = kid): VerificationKey {
  const id = `${kid} ${thumbprint}`;
  const known = made.get(id) ?? { kid, thumbprint, cryptoKeyFor: () => undefined };
  made.set(id, known);
  return known;
}

export function keySetOf(...keys: readonly (readonly [kid: string, thumbprint?: string])[]): Keys {
  return { keys: new Map(keys.map(each => [key(...each), new Set()])), kids: new Set(keys.map(([kid]) => kid)) };
}

export function keySet(...kids: readonly string[]): Keys {
  return keySetOf(...kids.map(kid => [kid] as const));
}

/** A new state machine. */
export function machine(overrides: Partial<KeySetLimits> = {}) {
  let state = createKeySetState({ ...limits, ...overrides });
  const waiting = new Set<string>();
  /** Returns what the event led to, as traces write it. */
  const send = (event: KeySetEvent, nowMs: number): readonly string[] => {
    const before = state;
    state = reduce(before, event, nowMs);
    const effects: string[] = [];
    if (state.fetch !== before.fetch) effects.push('fetch');
    if (before.phase === 'fetching' && state.phase === 'stopped') effects.push('abort');
    if (event.kind === 'asked') waiting.add(event.kid);
    for (const kid of waiting) {
      const { kind } = answerNow(state, kid, nowMs);
      if (kind !== 'known' && state.phase === 'fetching') continue;
      effects.push(`${kid}: ${kind}`);
      waiting.delete(kid);
    }
    return effects;
  };
  return {
    send,
    state: () => state,
    fetched: (nowMs: number, set: Keys, jitter = 0) =>
      send({ kind: 'fetched', fetch: state.fetch, set, jitter }, nowMs),
    failed: (nowMs: number, jitter = 0) =>
      send({ kind: 'failed', fetch: state.fetch, problem: 'status 500', jitter }, nowMs),
    ask: (nowMs: number, kid: string) => send({ kind: 'asked', kid }, nowMs),
    wake: (nowMs: number) => send({ kind: 'woken' }, nowMs),
    wakeAt: () => nextWakeMs(state),
  };
}

/** A machine whose first fetch runs from 0 ms. */
export function started(overrides: Partial<KeySetLimits> = {}): Machine {
  const driven = machine(overrides);
  driven.send({ kind: 'started' }, 0);
  return driven;
}

/** A machine whose first fetch ran from 0 to 100 ms and returned the key k1. */
export function loaded(overrides: Partial<KeySetLimits> = {}): Machine {
  const driven = started(overrides);
  driven.fetched(100, keySet('k1'));
  return driven;
}

export function fetches(effects: readonly string[]): number {
  return effects.filter(effect => effect === 'fetch').length;
}

/**
 * Declares a test for each trace. The traces are separated by empty lines, and each begins with a title. At its end in brackets is the machine
 * at the start (`new`, `started` or `loaded`, by default `loaded`) and limits that it has instead.
 */
export function describeTraces(subject: string): (traces: TemplateStringsArray) => void {
  return ([traces = '']) =>
    describe(subject, () => {
      for (const text of traces.trim().split(/\n\s*\n/)) {
        const [head = '', ...lines] = text.trim().split('\n');
        const [, title = '', start = 'loaded', changes = ''] = /^(.*?)(?: \[(\w+) ?(.*)\])?$/.exec(head) ?? [];
        const overrides = Object.fromEntries(
          changes === ''
            ? []
            : changes.split(' ').map(change => [change.split('=')[0], numberIn(change.split('=')[1] ?? '')]),
        );
        const at = { new: machine, started, loaded }[start];
        if (at === undefined || lines.length === 0) throw new Error(`no trace: ${head}`);
        it(title, () => void trace(at(overrides), lines.join('\n')));
      }
    });
}

/** Drives the machine through a trace, and asserts what its lines say. Returns the machine. */
export function trace(driven: Machine, lines: string): Machine {
  for (const line of lines.trim().split('\n')) {
    const [, time = '', event = '', effects = '', facts = ''] =
      /^\s*([\d_]+) ([^→;]+?)(?: → ([^;]+?))?(?:; (.+))?$/.exec(line) ?? [];
    const nowMs = numberIn(time);
    const led = event === 'look' ? [] : driven.send(eventOf(event, driven), nowMs);
    expect(led.join(', '), line).to.equal(effects);
    for (const fact of facts === '' ? [] : facts.split(', ')) expectFact(driven, fact, nowMs, line);
  }
  return driven;
}

function eventOf(text: string, driven: Machine): KeySetEvent {
  const [verb, ...rest] = text.split(' ');
  const { fetch } = driven.state();
  const jitter = Number(/^jitter=(.+)$/.exec(rest.at(-1) ?? '')?.[1] ?? 0);
  const words = rest.filter(word => !word.startsWith('jitter='));
  switch (verb) {
    case 'ask':
      return { kind: 'asked', kid: words.join() };
    case 'fetched':
      return { kind: 'fetched', fetch, set: keySet(...words), jitter };
    case 'unmodified':
      return { kind: 'notModified', fetch, jitter };
    case 'fails':
      return { kind: 'failed', fetch, problem: 'status 500', jitter };
    case 'seed':
      return { kind: 'seeded', ageMs: numberIn(words[0] ?? ''), set: keySet(...words.slice(1)) };
    case 'started':
    case 'woken':
    case 'changed':
    case 'stopped':
      return { kind: verb };
    default:
      throw new Error(`no event: ${text}`);
  }
}

function expectFact(driven: Machine, fact: string, nowMs: number, line: string): void {
  const [verb, ...words] = fact.split(' ');
  const state = driven.state();
  const [word = ''] = words;
  if (verb === 'due') expect(driven.wakeAt() ?? 'never', line).to.equal(word === 'never' ? word : numberIn(word));
  else if (verb === 'failed') expect(state.lastResult, line).to.equal('failure');
  else expect(isUsable(state, nowMs) ? [...state.set.kids] : [], line).to.deep.equal(words);
}

function numberIn(text: string): number {
  const number = Number(text.replaceAll('_', ''));
  if (Number.isNaN(number) && text !== 'NaN') throw new Error(`no number: ${text}`);
  return number;
}
