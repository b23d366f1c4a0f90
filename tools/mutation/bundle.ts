// Bundles a group's tests and the instrumented sources into one module, so that a mutant costs one import and no compilation.
import { readFile } from 'node:fs/promises';
import { relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';
import type { InstrumentedSources } from './mutants.ts';
import { type Group, project } from './scope.ts';

export interface Bundle {
  readonly file: string;
  /** Every bundled file of the project. */
  readonly inputs: readonly string[];
}

// Key pairs are generated once a process, not once a mutant: their module is external and imported once.
const keptOutside = 'lab/signing-key.ts';

export async function bundle(group: Group, sources: InstrumentedSources, directory: string): Promise<Bundle> {
  const file = `${directory}${group.name}.mjs`;
  const outside = `${directory}signing-key.mjs`;
  const common = { bundle: true, platform: 'node', format: 'esm', packages: 'external', target: 'node20.19' } as const;
  await build({ ...common, entryPoints: [`${project}${keptOutside}`], outfile: outside });
  const { metafile } = await build({
    ...common,
    absWorkingDir: project,
    stdin: { contents: group.tests.map(test => `import './${test}';`).join('\n'), resolveDir: project },
    outfile: file,
    plugins: [replaced(sources, outside)],
    metafile: true,
    logLevel: 'error',
  });
  return { file, inputs: [...Object.keys(metafile.inputs).filter(input => input !== '<stdin>'), keptOutside].sort() };
}

function replaced(sources: InstrumentedSources, outside: string): Plugin {
  return {
    name: 'mutants',
    setup(building) {
      building.onResolve({ filter: /\/signing-key\.ts$/ }, () => ({ path: outside, external: true }));
      building.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
        const text = sources.textOf.get(relative(project, path)) ?? (await readFile(path, 'utf8'));
        // Modules resolve fixtures relative to their source, not to the bundle.
        const contents = text.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href));
        return { contents, loader: 'ts' };
      });
    },
  };
}
