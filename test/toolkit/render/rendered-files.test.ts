// The command line in the first line of a rendered file, which a reader may copy into a shell.
import { expect } from 'chai';
import { toCommandLine } from '../../../src/toolkit/render/rendered-files.ts';

describe('toCommandLine', () => {
  it('quotes for a shell what is more than a plain word', () => {
    expect(toCommandLine(['a', "it's", '$(id)', 'b c'])).to.equal("a 'it'\\''s' '$(id)' 'b c'");
  });
});
