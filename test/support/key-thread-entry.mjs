// The entry of the key thread as it is in src/: threads of Node 20 do not take over the loader of TypeScript.
import { register } from 'tsx/esm/api';

register();
await import('../../src/keys/key-thread-entry.ts');
