// `npm run bench`: account-authz beside its peers and the do-nothing floors, in one run on one core. Prints tables, writes a page
// and a chart, and exits with 1 if a floor of docs/dev/performance.md is missed.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { toned, toText } from './report/table.ts';
import { buildPeers } from './speed/build-peers.ts';
import { callsSvg } from './speed/charts.ts';
import { goContenders } from './speed/contenders.ts';
import { evaluateFloors } from './speed/floors.ts';
import { forms } from './speed/form.ts';
import { cacheDirectory, projectDirectory, startBenchLab } from './speed/lab.ts';
import { type BenchOptions, parseBenchOptions, scenarioNames, usage } from './speed/options.ts';
import { benchMarkdown, sections, withFloors, withSizing } from './speed/report.ts';
import type { BenchResults } from './speed/results.ts';
import { runBench } from './speed/run.ts';
import { imageRuntime, ownRuntime } from './speed/runtime.ts';

// One exit listener for each child process.
process.setMaxListeners(0);

const isTerminal = process.stdout.isTTY === true;
const colour = isTerminal && (process.env.NO_COLOR ?? '') === '';
let printedScenario = '';
const resultsDirectory = join(projectDirectory, 'bench', 'results');

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

const parsed = parseBenchOptions(process.argv.slice(2));
switch (parsed.kind) {
  case 'help':
    process.stdout.write(usage);
    break;
  case 'usage problem':
    process.stderr.write(`bench: ${parsed.problem}\n${usage}`);
    process.exitCode = 1;
    break;
  case 'options':
    process.exitCode = await run(parsed.options);
}

async function run(options: BenchOptions): Promise<number> {
  const isScenario = (name: string): boolean => scenarioNames.some(scenario => scenario === name);
  const withGo = options.only.every(isScenario) || options.only.some(name => goContenders.includes(name));
  progress(
    withGo ? 'building the peers: the first time this fetches Go modules and takes minutes' : 'building the peers',
  );
  const peers = await buildPeers(join(projectDirectory, 'bench', 'peers'), cacheDirectory, withGo);
  const image = options.ownNode ? ownRuntime : await imageRuntime(projectDirectory, cacheDirectory);
  const runtime = { ...image, flags: options.nodeOptions ?? image.flags };
  const lab = await startBenchLab('RS256', runtime);
  try {
    const end = await runBench(lab, peers, forms[options.form], options, progress);
    progress('');
    if (end.kind === 'unknown names') {
      process.stderr.write(`bench: --only ${end.names.join(',')}: there are ${end.known.join(', ')}\n${usage}`);
      return 1;
    }
    const { results } = end;
    printResults(results);
    const directory = options.out ?? (results.run.isWhole ? resultsDirectory : undefined);
    if (directory !== undefined) await writePage(results, directory);
    return evaluateFloors(results).some(({ verdict }) => verdict === 'NOT MET') ? 1 : 0;
  } finally {
    await lab.stop();
  }
}

function printResults(results: BenchResults): void {
  for (const { name, title, reason } of results.absent)
    process.stdout.write(`${toned('absent', 'bad', colour)}  ${name}: ${title}: ${reason}\n`);
  for (const { title, table } of sections(results))
    process.stdout.write(`\n${toned(title, 'strong', colour)}\n${toText(table, colour)}\n`);
}

/** The page is written beside the folder of the chart and named after it. */
async function writePage(results: BenchResults, directory: string): Promise<void> {
  const isOurs = directory === resultsDirectory;
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, 'calls.svg'), callsSvg(results));
  await writeFile(join(isOurs ? dirname(directory) : directory, 'results.md'), benchMarkdown(results));
  if (!isOurs) return;
  for (const [name, withFigures] of [
    ['dev/performance.md', withFloors],
    ['sizing.md', withSizing],
  ] as const) {
    const document = join(projectDirectory, 'docs', name);
    await writeFile(document, withFigures(await readFile(document, 'utf8'), results));
  }
}

/** On a terminal, a status line that is overwritten; elsewhere a line when the scenario changes. */
function progress(text: string): void {
  if (isTerminal) {
    process.stdout.write(`\r\x1b[2K${toned(text, 'dim', colour)}`);
    return;
  }
  const [scenario = ''] = text.split(/[,:]/);
  if (scenario !== printedScenario && text !== '') process.stderr.write(`${scenario}\n`);
  printedScenario = scenario;
}
