// The built key thread: through tsx it needs three times the processor time to start.
import { createKeyThread } from '../src/keys/key-thread.ts';
import { builtFile } from './built.ts';

/** One thread for all services and key rings of this process, as each start takes 100 ms of processor time. */
export const { getDocument } = createKeyThread(builtFile('key-thread-entry.js'));
