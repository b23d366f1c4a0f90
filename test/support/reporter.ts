// Mocha's spec reporter plus a last line for tools: `N passed, N failed`.
import Mocha from 'mocha';

export default class ClosingLineReporter extends Mocha.reporters.Spec {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    endWithClosingLine(this, runner);
  }
}

/** To be called after the reporter has added its own listener of 'end', so that the failures are printed before this line. */
export function endWithClosingLine({ stats }: Mocha.reporters.Base, runner: Mocha.Runner): void {
  runner.once('end', () => process.stdout.write(`${stats.passes} passed, ${stats.failures} failed\n`));
}
