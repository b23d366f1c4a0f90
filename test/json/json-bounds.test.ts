// The limits on depth and number of values, checked before JSON is parsed.
import { expect } from 'chai';
import { type JsonBounds, parseBoundedJson } from '../../src/json/strict-json.ts';

const bounds = { maxDepth: 3, maxValues: 5 };
const siblings = { maxDepth: 1, maxValues: 100 };

/** The bound that the text exceeds. Some rows are no JSON, which is another problem. */
function exceeded(text: string, limits: JsonBounds): string | undefined {
  const parsed = parseBoundedJson(Buffer.from(text), limits);
  return parsed.kind === 'problem' && parsed.problem !== 'not JSON' ? parsed.problem : undefined;
}

describe('parseBoundedJson', () => {
  const rows: readonly (readonly [text: string, problem: string | undefined])[] = [
    ['', undefined],
    ['1', undefined],
    ['[[[]]]', undefined],
    ['[[[[]]]]', 'nested too deep'],
    ['{"a":{"b":{"c":1}}}', undefined],
    ['{"a":{"b":{"c":{}}}}', 'nested too deep'],
    ['[{"a":[[', 'nested too deep'],
    ['[1,2,3,4]', undefined],
    ['[1,2,3,4,5]', 'too many values'],
    ['{"a":1,"b":2,"c":3,"d":4,"e":5}', 'too many values'],
    ['[],[],[]', 'too many values'],
    ['"[[[[[,,,,,,"', undefined],
    ['["\\"[[[[", "\\\\", []]', undefined],
    ['["\\\\", [[[', 'nested too deep'],
    ['"never ends [[[[', undefined],
    ['"never ends \\', undefined],
  ];
  for (const [text, problem] of rows) {
    it(`'${text}' is ${problem === undefined ? 'accepted' : `refused: ${problem}`}`, () => {
      expect(exceeded(text, bounds)).to.equal(problem);
    });
  }

  for (const text of ['[],[],[]', '{},{},{}']) {
    it(`counts the depth of siblings once: ${text}`, () => {
      expect(exceeded(text, siblings)).to.equal(undefined);
    });
  }
});
