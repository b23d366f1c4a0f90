// Query parsers of Node frameworks read no account that was not compared with the token. `npm run parsers` asks those of other languages.
import { expect } from 'chai';
import { nodeParsers } from './node-parsers.ts';
import {
  compareParsers,
  generateQueries,
  type ParserComparison,
  type ReadQuery,
  toTable,
} from './parser-comparison.ts';
import { parameter } from './queries.ts';

// A fixed seed, so that failures are reproducible; `npm run parsers` uses others.
const seed = Number(process.env.PARSERS_SEED ?? 1);
const count = 8000;

describe(`query parsers and ${count} queries of seed ${seed}`, () => {
  let queries: ReturnType<typeof generateQueries>;
  let readings: Parameters<typeof compareParsers>[1];
  let comparison: ParserComparison;

  before(() => {
    queries = generateQueries(seed, count);
    readings = new Map(Array.from(nodeParsers, ([name, read]) => [name, queries.map(read)] as const));
    comparison = compareParsers(queries, readings);
  });

  it('read no account that was neither compared nor refused', () => {
    expect(comparison.differences.slice(0, 10)).to.deep.equal([]);
  });

  it('are asked about queries of every kind', () => {
    expect(comparison.allowed / queries.length).to.be.within(0.2, 0.8);
    for (const [parser, { bound, refused }] of comparison.counts) {
      expect(bound, `${parser}\n${toTable(comparison)}`).to.be.above(400);
      expect(refused, parser).to.be.above(200);
      expect(bound - refused, parser).to.be.above(120);
    }
  });

  // Sensitivity of the comparison: readers with common mistakes replace the product.
  const exact: ReadQuery = query => new URLSearchParams(query).getAll(parameter);
  const mistaken: readonly (readonly [name: string, read: ReadQuery, parser: string])[] = [
    ['that reads as URLSearchParams does', exact, 'h3'],
    ['that reads as URLSearchParams does', exact, 'qs, allowDots'],
    ['that reads as URLSearchParams does', exact, 'picoquery, dots'],
    ['that refuses brackets', query => (/\[|%5b/i.test(query) ? 'refused' : exact(query)), 'qs, allowDots'],
    [
      'that refuses encoded names',
      query => (/%[^=&]*=/.test(query) ? 'refused' : exact(query)),
      'qs, ignoreQueryPrefix',
    ],
    [
      'that does not look for ;',
      query => (/[.[\]?%=]=/.test(query) ? 'refused' : exact(query)),
      'node:querystring, delimiter ;',
    ],
  ];
  for (const [name, read, parser] of mistaken) {
    it(`find differences to a reader ${name}: ${parser}`, () => {
      const { differences } = compareParsers(queries, readings, read);
      expect(differences.filter(each => each.parser === parser)).to.have.length.of.at.least(1);
    });
  }
});
