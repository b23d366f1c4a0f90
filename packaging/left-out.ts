// Leaves out of a bundle what packages load and never call here.
import type { Plugin } from 'esbuild';

/** Files of packages, by what they are asked for with, and by whom. */
const leftOut: readonly { readonly path: RegExp; readonly importer: RegExp }[] = [
  // A client and the loader of .proto files, for services (channelz, ORCA) that nobody starts here.
  {
    path: /^(?:\.\/(?:channel-credentials|make-client)|@grpc\/proto-loader)$/,
    importer: /\/@grpc\/grpc-js\/build\/src\/(?:channelz|orca)\.js$/,
  },
  // HTTP/2, which undici offers to a server only where it is told to.
  { path: /^\.\/client-h2\.js$/, importer: /\/undici\/lib\/dispatcher\/client\.js$/ },
  // The log goes to one place, from this thread.
  { path: /^\.\/(?:lib\/)?(?:transport|multistream)$/, importer: /\/pino\/(?:pino|lib\/tools)\.js$/ },
  // The figures of one process, which are asked for.
  { path: /^\.\/lib\/(?:cluster|worker|pushgateway)$/, importer: /\/@prometheus-io\/client\/index\.js$/ },
  // Exemplars, which nothing turns on; with this gone, the bundle has of the API what check-spans.ts needs.
  { path: /^@opentelemetry\/api$/, importer: /\/@prometheus-io\/client\/lib\/metrics\/processCpuTotal\.js$/ },
];

/**
 * Each of these is an empty module in the bundle, so that a call of it throws. All together they are a tenth of what a service would keep
 * alive and each major collection mark.
 */
export const leaveOut: Plugin = {
  name: 'left-out',
  setup({ onResolve, onLoad }) {
    const namespace = 'left-out';
    onResolve({ filter: /.*/ }, ({ path, importer }) => {
      const from = importer.replaceAll('\\', '/');
      return leftOut.some(each => each.path.test(path) && each.importer.test(from)) ? { path, namespace } : undefined;
    });
    onLoad({ filter: /.*/, namespace }, () => ({ contents: 'module.exports = {};' }));
  },
};
