// `npm run bench`: account-authz beside its peers and the floors beneath them, in one run on one core. Prints tables, leaves a page
// and charts, and ends with 1 where a floor of product.md section 7 is not met.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { toned, toText } from './report/table.ts';
import { buildPeers, goPeers } from './speed/build-peers.ts';
import { callsSvg, latencySvg } from './speed/charts.ts';
import { withResults } from './speed/document.ts';
import { judgeFloors } from './speed/floors.ts';
import { quickForm, wholeForm } from './speed/form.ts';
import { cacheDirectory, projectDirectory, startBenchLab } from './speed/lab.ts';
import { nodeBinary } from './speed/node-binary.ts';
import { type BenchOptions, parseBenchOptions, usage } from './speed/options.ts';
import { benchMarkdown, sections } from './speed/report.ts';
import type { BenchResults } from './speed/results.ts';
import { runBench } from './speed/run.ts';
import { mayChoose } from './speed/scenario-names.ts';

// A listener for each process that has to end with this one.
process.setMaxListeners(0);

const isTerminal = process.stdout.isTTY === true;
const colour = isTerminal && (process.env.NO_COLOR ?? '') === '';
let told = '';
const resultsDirectory = join(projectDirectory, 'bench', 'results');

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

const parsed = parseBenchOptions(process.argv.slice(2));
switch (parsed.kind) {
  case 'help':
    print(usage);
    break;
  case 'usage problem':
    process.stderr.write(`bench: ${parsed.problem}\n${usage}`);
    process.exitCode = 1;
    break;
  case 'options':
    process.exitCode = await run(parsed.options);
}

async function run(options: BenchOptions): Promise<number> {
  if (options.render) {
    const results = JSON.parse(await readFile(join(resultsDirectory, 'bench.json'), 'utf8')) as BenchResults;
    await leave(results, options.out ?? resultsDirectory);
    return 0;
  }
  const withGo = mayChoose(options.only, goPeers);
  progress(
    withGo ? 'building the peers: the first time this fetches Go modules and takes minutes' : 'building the peers',
  );
  const peers = await buildPeers(join(projectDirectory, 'bench', 'peers'), cacheDirectory, { withGo });
  const node = await nodeBinary(options.node, cacheDirectory);
  const lab = await startBenchLab({ ...options, node });
  try {
    const form = options.quick ? quickForm : wholeForm;
    const end = await runBench(lab, peers, form, options, progress);
    progress('');
    if (end.kind === 'unknown names') {
      process.stderr.write(`bench: --only ${end.names.join(',')}: there are ${end.known.join(', ')}\n${usage}`);
      return 1;
    }
    const { results } = end;
    tell(results);
    const directory = options.out ?? (results.run.isWhole ? resultsDirectory : undefined);
    if (directory !== undefined) await leave(results, directory);
    return judgeFloors(results).some(({ isMet }) => isMet === false) ? 1 : 0;
  } finally {
    await lab.stop();
  }
}

function tell(results: BenchResults): void {
  for (const { name, title, reason } of results.absent)
    print(`${toned('absent', 'bad', colour)}  ${name}: ${title}: ${reason}\n`);
  for (const { title, table } of sections(results))
    print(`\n${toned(title, 'strong', colour)}\n${toText(table, colour)}\n`);
}

/** The page stands beside the folder with the rest, as the name of the folder says what it is. */
async function leave(results: BenchResults, directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  await Promise.all([
    writeFile(join(directory, 'bench.json'), `${JSON.stringify(results, undefined, 1)}\n`),
    writeFile(join(directory, 'calls.svg'), callsSvg(results)),
    writeFile(join(directory, 'latency.svg'), latencySvg(results)),
    writeFile(
      directory === resultsDirectory ? join(dirname(resultsDirectory), 'results.md') : join(directory, 'results.md'),
      benchMarkdown(results),
    ),
  ]);
  if (directory !== resultsDirectory) return;
  const document = join(projectDirectory, 'docs', 'performance.md');
  await writeFile(document, withResults(await readFile(document, 'utf8'), results));
}

function print(text: string): void {
  process.stdout.write(text);
}

/** On a terminal, a line that the next one replaces; elsewhere a line when the scenario changes. */
function progress(text: string): void {
  if (isTerminal) {
    process.stdout.write(`\r\x1b[2K${toned(text, 'dim', colour)}`);
    return;
  }
  const [scenario = ''] = text.split(/[,:]/);
  if (scenario !== told && text !== '') process.stderr.write(`${scenario}\n`);
  told = scenario;
}
