import { expect } from 'chai';
import { ownBlock, sharedBlocks } from '../../../bench/load/hpack.ts';

describe('an HPACK block', () => {
  it('of one field is the example of RFC 7541 C.2.1, and enters the table', () => {
    const { first } = sharedBlocks([{ name: 'custom-key', value: 'custom-header' }]);
    expect(first.toString('hex')).to.equal('400a637573746f6d2d6b65790d637573746f6d2d686561646572');
  });

  it('of a request alone is the example of RFC 7541 C.2.2, and leaves no trace', () => {
    expect(ownBlock([{ name: ':path', value: '/sample/path' }]).toString('hex')).to.equal(
      '040c2f73616d706c652f70617468',
    );
  });

  it('of a static field is its index, first and later', () => {
    const { first, later } = sharedBlocks([
      { name: ':method', value: 'GET' },
      { name: ':scheme', value: 'http' },
    ]);
    expect([first.toString('hex'), later.toString('hex')]).to.deep.equal(['8286', '8286']);
  });

  it('names the newest entry of the table 62 and the ones before it higher', () => {
    const { later } = sharedBlocks([
      { name: 'one', value: '1' },
      { name: ':method', value: 'POST' },
      { name: 'two', value: '2' },
    ]);
    expect(Array.from(later, byte => byte & 0x7f)).to.deep.equal([63, 3, 62]);
  });

  it('writes a length that does not fit its prefix in more bytes', () => {
    const block = ownBlock([{ name: 'authorization', value: 'x'.repeat(1337) }]);
    // Name 23 of the static table beyond 4 bits; 1,337 beyond 7 bits (RFC 7541 section 5.1).
    expect(block.subarray(0, 5).toString('hex')).to.equal('0f087fba09');
    expect(block).to.have.length(5 + 1337);
  });
});
