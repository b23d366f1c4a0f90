// The entry of the thread that reads a revocation list, as it is in src/: threads of Node 20 do not take over the loader of TypeScript.
import { register } from 'tsx/esm/api';

register();
await import('../../src/config/revocation-thread-entry.ts');
