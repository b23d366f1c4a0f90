// The built key thread, for tests that create services or key rings in process: through tsx it needs three times the processor time to start.
import { builtFile } from './built.ts';

export const keyThreadEntry = builtFile('key-thread-entry.js');
