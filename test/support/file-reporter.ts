// One line a test file, with its duration; at the end the failures and the closing line. For runs of all tests (tools/test.ts).
import { relative } from 'node:path';
import Mocha from 'mocha';
import { endWithClosingLine } from './reporter.ts';

export default class FileReporter extends Mocha.reporters.Base {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    let file: string | undefined;
    let [passed, failed, startedMs] = [0, 0, performance.now()];
    const endFile = (next?: string): void => {
      if (file !== undefined) {
        const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
        const name = relative(process.cwd(), file);
        console.log(
          `${failed > 0 ? '✖' : '✔'} ${name} ${passed}${failed > 0 ? `, ${failed} failed` : ''} (${seconds} s)`,
        );
      }
      [file, passed, failed, startedMs] = [next, 0, 0, performance.now()];
    };
    // A suite begins before its hooks run, so that their time counts for its file.
    runner.on('suite', suite => {
      if (suite.file !== undefined && suite.file !== file) endFile(suite.file);
    });
    runner.on('pass', () => {
      passed += 1;
    });
    runner.on('fail', () => {
      failed += 1;
    });
    runner.once('end', () => {
      endFile();
      this.epilogue();
    });
    endWithClosingLine(this, runner);
  }
}
