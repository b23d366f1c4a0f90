// The spec reporter of mocha, closed by one line that tools can read: `N passed, N failed`.
import Mocha from 'mocha';

export default class ClosingLineReporter extends Mocha.reporters.Spec {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    // A second 'end' listener: the parent's, registered first, prints the failures before this line.
    runner.once('end', () => {
      const { passes, failures } = this.stats;
      process.stdout.write(`${passes} passed, ${failures} failed\n`);
    });
  }
}
