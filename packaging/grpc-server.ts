// Makes a bundle take of grpc-js the server alone, but for the command that is a client.
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'esbuild';

const project = fileURLToPath(new URL('../', import.meta.url));
const client = join(project, 'src/commands/health.ts');

/**
 * Of grpc-js only its server. Its index loads channels, balancers and filters too, more than half of all that it has, which each major
 * collection would mark.
 */
export const grpcServer: Plugin = {
  name: 'grpc-server',
  setup({ onResolve, onLoad }) {
    const namespace = 'grpc-server';
    onResolve({ filter: /^@grpc\/grpc-js$/ }, ({ importer }) =>
      importer === client ? undefined : { path: 'grpc-js', namespace },
    );
    onLoad({ filter: /^grpc-js$/, namespace }, () => ({
      resolveDir: project,
      contents: `
        import { LogVerbosity, Status } from '@grpc/grpc-js/build/src/constants.js';
        import { setLoggerVerbosity } from '@grpc/grpc-js/build/src/logging.js';
        import { setup as setUpDns } from '@grpc/grpc-js/build/src/resolver-dns.js';
        import { setup as setUpUds } from '@grpc/grpc-js/build/src/resolver-uds.js';
        import { Server } from '@grpc/grpc-js/build/src/server.js';
        import { ServerCredentials } from '@grpc/grpc-js/build/src/server-credentials.js';
        setUpDns();
        setUpUds();
        export { LogVerbosity as logVerbosity, Server, ServerCredentials, setLoggerVerbosity as setLogVerbosity, Status as status };
      `,
    }));
  },
};
