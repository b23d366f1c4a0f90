// The traceparent parser against W3C Trace Context, section 3.2.
import { expect } from 'chai';
import fc from 'fast-check';
import { parseTraceParent } from '../../src/check/trace-context.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const parentId = 'b7ad6b7169203331';
const zeros = (count: number): string => '0'.repeat(count);

describe('parseTraceParent (W3C Trace Context, section 3.2)', () => {
  const good: readonly (readonly [name: string, text: string, sampled: boolean])[] = [
    ['version 00, sampled', `00-${traceId}-${parentId}-01`, true],
    ['version 00, not sampled', `00-${traceId}-${parentId}-00`, false],
    ['unknown flags with sampled', `00-${traceId}-${parentId}-ff`, true],
    ['unknown flags without sampled', `00-${traceId}-${parentId}-fe`, false],
    ['a later version of the same length', `01-${traceId}-${parentId}-01`, true],
    ['the last version', `fe-${traceId}-${parentId}-00`, false],
    ['a later version with more fields', `cc-${traceId}-${parentId}-01-what-the-future-holds`, true],
    ['a later version with a trailing dash', `01-${traceId}-${parentId}-01-`, true],
    ['a trace id with leading zeros', `00-${zeros(16)}${traceId.slice(16)}-${parentId}-01`, true],
  ];
  for (const [name, text, sampled] of good) {
    it(`reads ${name}`, () => {
      expect(parseTraceParent(text)).to.deep.equal({ traceId: text.slice(3, 35), parentId, sampled });
    });
  }

  const bad: readonly (readonly [name: string, text: string | undefined])[] = [
    ['no header', undefined],
    ['an empty header', ''],
    ['version ff', `ff-${traceId}-${parentId}-01`],
    ['version 00 with more fields', `00-${traceId}-${parentId}-01-more`],
    ['version 00 with an extra character', `00-${traceId}-${parentId}-010`],
    ['a later version with more text but no dash', `01-${traceId}-${parentId}-01.more`],
    ['a trace id of zeros', `00-${zeros(32)}-${parentId}-01`],
    ['a parent id of zeros', `00-${traceId}-${zeros(16)}-01`],
    ['an upper-case trace id', `00-${traceId.toUpperCase()}-${parentId}-01`],
    ['upper-case flags', `00-${traceId}-${parentId}-0A`],
    ['a non-hexadecimal letter', `00-${traceId.slice(1)}g-${parentId}-01`],
    ['a short trace id', `00-${traceId.slice(1)}-${parentId}-01`],
    ['no flags', `00-${traceId}-${parentId}`],
    ['a leading space', ` 00-${traceId}-${parentId}-01`],
    ['a trailing line feed', `00-${traceId}-${parentId}-01\n`],
    ['two headers in one', `00-${traceId}-${parentId}-01,00-${traceId}-${parentId}-01`],
    ['digits of another script', `00-${traceId.slice(1)}٣-${parentId}-01`],
  ];
  for (const [name, text] of bad) {
    it(`rejects ${name}`, () => {
      expect(parseTraceParent(text)).to.equal(undefined);
    });
  }

  it('round-trips any traceparent of any version but ff', () => {
    const hex = (length: number): fc.Arbitrary<string> =>
      fc
        .array(fc.constantFrom(...'0123456789abcdef'), { minLength: length, maxLength: length })
        .map(digits => digits.join(''));
    const version = hex(2).filter(text => text !== 'ff');
    const id = (length: number) => hex(length).filter(text => text !== zeros(length));
    fc.assert(
      fc.property(version, id(32), id(16), hex(2), (first, trace, parent, flags) => {
        expect(parseTraceParent(`${first}-${trace}-${parent}-${flags}`)).to.deep.equal({
          traceId: trace,
          parentId: parent,
          sampled: Number.parseInt(flags, 16) % 2 === 1,
        });
      }),
    );
  });
});
