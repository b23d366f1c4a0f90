// docs/keys.md names the states, events, problems and bounds of src/keys/.
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { fixedLimits } from '../../src/keys/key-set-state.ts';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

const page = read('docs/keys.md');
const machine = read('src/keys/key-set-reducer.ts');

const allMatches = (text: string, pattern: RegExp): string[] => [
  ...new Set([...text.matchAll(pattern)].map(match => match[1] ?? '')),
];

const section = (text: string, start: string, end: string): string => {
  const from = text.indexOf(start);
  return text.slice(from, text.indexOf(end, from));
};

describe('docs/keys.md', () => {
  it('has a row for every event', () => {
    const fetched = section(read('src/keys/key-set-fetched.ts'), 'export type FetchOutcome', ';\n\n');
    const others = section(machine, 'export type KeySetEvent', 'export type KeySetEffect');
    const events = allMatches(`${others}${fetched}`, /kind: '(\w+)'/g);
    const rows = allMatches(section(page, '## States and events', '```mermaid'), /^\| `(\w+)`/gm);
    expect(rows).to.have.members(events);
    expect(events).to.have.length(10);
  });

  it('has a column and a node of the diagram for every phase', () => {
    const phases = allMatches(section(read('src/keys/key-set-state.ts'), 'readonly phase:', ';'), /'(\w+)'/g);
    const header = section(page, '| event |', '\n');
    expect(allMatches(header, /`(\w+)`/g)).to.deep.equal(phases);
    const diagram = section(page, 'stateDiagram', '```');
    for (const phase of phases) expect(diagram).to.match(new RegExp(`^  (?:${phase} -->|.* --> ${phase}:)`, 'm'));
  });

  it('has no event that the comment of key-set-reducer.ts omits', () => {
    const header = section(machine, '// phase', 'import');
    for (const event of allMatches(section(page, '## States and events', '```mermaid'), /^\| `(\w+)`/gm)) {
      expect(header, event).to.contain(event);
    }
  });

  const sources: readonly (readonly [string, string, RegExp])[] = [
    ['reason why a key is skipped', section(read('src/keys/jwks.ts'), 'type SkippedKeyReason', ';'), /'([^']+)'/g],
    ['problem of a document', section(read('src/keys/jwks.ts'), 'interface KeySetProblem', '}'), /\| '([^']+)'/g],
    [
      'network problem by code',
      section(read('src/keys/network-problem.ts'), 'problemsByCode', ']);'),
      /, '([^']+)'\]/g,
    ],
    [
      'network problem by prefix',
      section(read('src/keys/network-problem.ts'), 'problemsByPrefix', '];'),
      /, '([^']+)'\]/g,
    ],
    [
      'problem of an answer',
      section(read('src/keys/key-transport.ts'), 'function responseProblem(', '\n}'),
      /'([a-z]+ [a-z ]+)'/g,
    ],
    ['problem of caFile', read('src/keys/key-authorities.ts'), /'(CA file [^']+)'/g],
    [
      'problem of the client certificate',
      section(read('src/keys/key-connection.ts'), 'function loadClientCertificate', '\n}\n'),
      /'(client [a-z ]+)'/g,
    ],
    [
      'problem of a closed connection',
      `connection closed${/closed\}([^`]+)`/.exec(read('src/keys/key-transport.ts'))?.[1]}`,
      /^(.+)$/g,
    ],
    ['problem of the key thread', section(read('src/keys/key-thread.ts'), 'const ended =', ';'), /problem\('([^']+)'/g],
    ['problem of a file', section(read('src/keys/key-source.ts'), 'const fileProblems', '};'), /: '([^']+)'/g],
    [
      'problem of discovery',
      section(read('src/keys/key-source.ts'), 'function parseDiscovery', '\n}'),
      /'discovery: ([a-z_ ]+)'/g,
    ],
  ];
  for (const [name, source, pattern] of sources) {
    it(`names every ${name}`, () => {
      const words = allMatches(source, pattern);
      expect(words).to.not.deep.equal([]);
      for (const word of words) expect(page).to.contain(`\`${word}\``);
    });
  }

  it('states the bounds that the code has', () => {
    const jwks = read('src/keys/jwks.ts');
    const thread = read('src/keys/key-thread.ts');
    const bound = (text: string, name: string): string | undefined =>
      new RegExp(`const ${name} = (.+);`).exec(text)?.[1];
    const { waitMs, maxWaiters, maxUnknownKids, maxRetryMs, maxEarlyMs, quietMs } = fixedLimits;
    expect(page).to.contain(`at most ${waitMs} ms`);
    expect(page).to.contain(`At most ${maxWaiters} different kids wait`);
    expect(page).to.contain(`at most ${maxUnknownKids} (the negative cache)`);
    expect(page).to.contain(`at most ${maxRetryMs / 1000} seconds while there is no usable set`);
    expect(page).to.contain(`at most ${maxEarlyMs / 1000} seconds`);
    expect(page).to.contain(`${quietMs / 60_000} minutes`);
    expect(page).to.contain(`At most ${bound(jwks, 'maxKeys')} keys`);
    expect(page).to.contain(`1 to ${bound(jwks, 'maxKidLength')} characters`);
    expect(bound(jwks, 'maxKeySetBytes')).to.equal('512 * 1024');
    expect(page).to.contain('512 KiB');
    expect(page).to.contain(`limited to ${bound(thread, 'maxHeapMegabytes')} MB`);
    expect(bound(thread, 'graceMs')).to.equal('2000');
    const slots = read('src/keys/fetch-slots.ts');
    expect(page).to.contain(`at most ${bound(slots, 'maxFetches')} over all issuers`);
    expect(page).to.contain(`has at most ${bound(slots, 'maxShare')} at a time`);
  });
});
