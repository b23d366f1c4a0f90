// The text and the code of what was thrown.
import { expect } from 'chai';
import { errorCode, messageOf } from '../../src/text/problem.ts';

const systemError = Object.assign(new Error('no such file'), { code: 'ENOENT' });

describe('messageOf', () => {
  it('returns the message of an error', () => expect(messageOf(systemError)).to.equal('no such file'));

  it('returns any other value as text', () => {
    expect([messageOf('thrown'), messageOf(undefined), messageOf(42)]).to.deep.equal(['thrown', 'undefined', '42']);
  });
});

describe('errorCode', () => {
  it('returns the code of a system error', () => expect(errorCode(systemError)).to.equal('ENOENT'));

  for (const [name, value] of [
    ['an error without a code', new Error('x')],
    ['a code that is no text', Object.assign(new Error('x'), { code: 8 })],
    ['an object that is no error', { code: 'ENOENT' }],
    ['undefined', undefined],
  ] as const) {
    it(`returns nothing for ${name}`, () => expect(errorCode(value)).to.equal(undefined));
  }
});
