// Makes a bundle take of undici the client alone.
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'esbuild';

const project = fileURLToPath(new URL('../', import.meta.url));

/**
 * Of undici only the client. Its index loads fetch, sockets and caches too, and with them the undici that Node has of its own: 2 MB of
 * objects that no key set is fetched with, and that each major collection would mark. The methods of dispatchers are given to them here as there.
 */
export const undiciClient: Plugin = {
  name: 'undici-client',
  setup({ onResolve, onLoad }) {
    const namespace = 'undici-client';
    onResolve({ filter: /^undici$/ }, () => ({ path: 'undici', namespace }));
    onLoad({ filter: /.*/, namespace }, () => ({
      resolveDir: project,
      contents: `
        import api from 'undici/lib/api/index.js';
        import errors from 'undici/lib/core/errors.js';
        import Agent from 'undici/lib/dispatcher/agent.js';
        import Dispatcher from 'undici/lib/dispatcher/dispatcher.js';
        import EnvHttpProxyAgent from 'undici/lib/dispatcher/env-http-proxy-agent.js';
        Object.assign(Dispatcher.prototype, api);
        export { Agent, EnvHttpProxyAgent, errors };
      `,
    }));
  },
};
