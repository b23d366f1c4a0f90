// The entry of the revocation thread in src/: worker threads of Node 20 do not inherit the TypeScript loader.
import { register } from 'tsx/esm/api';

register();
await import('../../src/config/revocation-thread-entry.ts');
