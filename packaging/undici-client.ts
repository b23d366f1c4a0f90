// Makes a bundle take of undici the client alone.
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'esbuild';

const project = fileURLToPath(new URL('../', import.meta.url));

/**
 * Of undici only the client. Its index loads fetch, sockets and caches too, and with them the undici that Node has of its own: 2 MB of
 * objects that no key set is fetched with, and that each major collection would mark. Dispatchers are given their methods here as there:
 * the one that is called and the one that a proxy is reached with.
 */
export const undiciClient: Plugin = {
  name: 'undici-client',
  setup({ onResolve, onLoad }) {
    const namespace = 'undici-client';
    onResolve({ filter: /^undici$/ }, () => ({ path: 'undici', namespace }));
    onLoad({ filter: /.*/, namespace }, () => ({
      resolveDir: project,
      contents: `
        import connect from 'undici/lib/api/api-connect.js';
        import request from 'undici/lib/api/api-request.js';
        import errors from 'undici/lib/core/errors.js';
        import Agent from 'undici/lib/dispatcher/agent.js';
        import Dispatcher from 'undici/lib/dispatcher/dispatcher.js';
        import EnvHttpProxyAgent from 'undici/lib/dispatcher/env-http-proxy-agent.js';
        Object.assign(Dispatcher.prototype, { connect, request });
        export { Agent, EnvHttpProxyAgent, errors };
      `,
    }));
  },
};
