// The flags of V8 are those of the Node that runs.
import { execFileSync } from 'node:child_process';
import { expect } from 'chai';
import { v8Flags } from '../../src/service/v8-flags.ts';

describe('v8Flags', () => {
  // V8 says nothing of a flag that it does not have.
  it('are flags that this Node has', () => {
    const known = execFileSync(process.execPath, ['--v8-options'], { encoding: 'utf8' });
    const names = v8Flags.map(flag => flag.replace(/^--(?:no-)?|=.*$/g, ''));
    expect(names.filter(name => !known.includes(`--${name} (`))).to.deep.equal([]);
  });
});
