// How the problems of a configuration are printed.
import { expect } from 'chai';
import { type ConfigProblem, formatProblems } from '../../src/config/problems.ts';

describe('formatProblems', () => {
  it('prints one line per problem with file, line, column and place', () => {
    const problems: readonly ConfigProblem[] = [
      { place: '', line: 1, column: 1, message: 'the file is empty' },
      { place: 'issuers[0].audiences', line: 12, column: 5, message: 'must name at least one audience' },
    ];
    expect(formatProblems('config.yaml', problems)).to.equal(
      'config.yaml:1:1: the file is empty\nconfig.yaml:12:5: issuers[0].audiences: must name at least one audience\n',
    );
  });

  it('escapes control characters in a file name', () => {
    const problem = { place: '', line: 1, column: 1, message: 'the file does not exist' };
    expect(formatProblems('a\nb\u001b', [problem])).to.equal('a\\u{a}b\\u{1b}:1:1: the file does not exist\n');
  });
});
