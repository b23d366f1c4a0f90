// The built revocation thread, for tests that create services in process.
import { builtFile } from './built.ts';

export const revocationThreadEntry = builtFile('revocation-thread-entry.js');
