// One line a test file, with the time of its hooks and tests; at the end the failures and the closing line. For runs of all tests
// (tools/test.ts), where mocha hands on the events of one file after the other.
import { relative } from 'node:path';
import Mocha from 'mocha';
import { sourceFile } from '../../lab/compiled.ts';
import { endWithClosingLine } from './reporter.ts';

export default class FileReporter extends Mocha.reporters.Base {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    let file: string | undefined;
    let [passed, failed, durationMs] = [0, 0, 0];
    const endFile = (next?: string): void => {
      if (file !== undefined) {
        const counts = `${passed}${failed > 0 ? `, ${failed} failed` : ''}`;
        const seconds = (durationMs / 1000).toFixed(1);
        console.log(`${failed > 0 ? '✖' : '✔'} ${sourceFile(relative(process.cwd(), file))} ${counts} (${seconds} s)`);
      }
      [file, passed, failed, durationMs] = [next, 0, 0, 0];
    };
    const add = (runnable: Mocha.Runnable): void => {
      if (runnable.file !== undefined && runnable.file !== file) endFile(runnable.file);
      durationMs += runnable.duration ?? 0;
    };
    runner.on('hook end', add);
    runner.on('pass', test => {
      add(test);
      passed += 1;
    });
    runner.on('fail', runnable => {
      add(runnable);
      failed += 1;
    });
    runner.once('end', () => {
      endFile();
      this.epilogue();
    });
    endWithClosingLine(this, runner);
  }
}
