// Mocha's spec reporter plus a last line for tools: `N passed, N failed`.
import Mocha from 'mocha';

export default class ClosingLineReporter extends Mocha.reporters.Spec {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    // The parent's 'end' listener is registered first, so the failures are printed before this line.
    runner.once('end', () => {
      const { passes, failures } = this.stats;
      process.stdout.write(`${passes} passed, ${failures} failed\n`);
    });
  }
}
