// `npm run resilience`: what rotation, outage, a slow issuer and a flood do to requests through a real Envoy. Prints a table and
// the bars of issue 4, leaves a picture and a page. `-- --short` is in brief and judges no figures; `-- --strict` fails over them.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { toned, toText } from './report/table.ts';
import { barsOf, type Phases } from './resilience/bars.ts';
import { type Form, fullForm, shortForm } from './resilience/form.ts';
import { figuresOf, judgeAnswers, type PhaseFigures } from './resilience/judgement.ts';
import { startLab } from './resilience/lab.ts';
import { barLine, phaseTable, resilienceMarkdown, wrongLines } from './resilience/report.ts';
import { type PhaseRecord, runPhase, scenario, warmUp } from './resilience/scenario.ts';
import { resilienceSvg } from './resilience/timeline.ts';

const { values: options } = parseArgs({
  options: {
    short: { type: 'boolean', default: false },
    strict: { type: 'boolean', default: false },
    rate: { type: 'string' },
    /** NODE_OPTIONS of the product, as an image may set them. */
    'node-options': { type: 'string' },
    /** Where the picture and the page go; the short form leaves none unless told where. */
    out: { type: 'string' },
  },
});
const isTerminal = process.stdout.isTTY === true;
const colour = isTerminal && (process.env.NO_COLOR ?? '') === '';
const chosen = options.short ? shortForm : fullForm;
const form: Form = options.rate === undefined ? chosen : { ...chosen, goodPerSecond: Number(options.rate) };
const results = fileURLToPath(new URL('results/', import.meta.url));
const directory = options.out ?? (options.short ? undefined : results);

// What was started ends with this process, which a signal alone would not let it.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));

process.exitCode = await run();

async function run(): Promise<number> {
  progress('starting the issuer, account-authz, Envoy, the upstream and the load');
  const lab = await startLab(form, options['node-options']);
  const records: PhaseRecord[] = [];
  try {
    progress('warming up');
    await Promise.race([warmUp(lab, form), lab.failed]);
    const phases = scenario(lab, form);
    for (const [index, phase] of phases.entries()) {
      const head = `${index + 1}/${phases.length}  ${phase.title.padEnd(22)}`;
      progress(`${head}  …`);
      const record = await Promise.race([runPhase(lab, phase), lab.failed]);
      records.push(record);
      // So far: what is still under way is judged at the end.
      const { answers, wrong, refusedGood } = figuresOf(record, judgeAnswers(lab, form, record.beforeMs), lab);
      done(
        `${head}  ${answers.length} answers, ${wrong.length} wrong, ${refusedGood.length} good refused`,
        wrong.length === 0,
      );
    }
    const sent = await lab.endLoad();
    const judged = judgeAnswers(lab, form);
    const figures = records.map(record => figuresOf(record, judged, lab));
    const unanswered = sent - lab.answers.length;
    const bars = barsOf(byName(figures), judged, lab.issuer.history(), form, unanswered);

    print('');
    print(toText(phaseTable(figures), colour));
    print('');
    for (const bar of bars) print(barLine(bar, colour));
    for (const line of wrongLines(judged, records)) print(toned(`wrong: ${line}`, 'bad', colour));
    if (directory !== undefined) {
      await mkdir(directory, { recursive: true });
      await writeFile(join(directory, 'resilience.svg'), resilienceSvg(figures, judged, lab, form));
      await writeFile(join(directory, 'resilience.md'), resilienceMarkdown(figures, bars, lab, form));
    }
    return bars.some(({ isMet, kind }) => isMet === false && (kind === 'correctness' || options.strict)) ? 1 : 0;
  } finally {
    await lab.stop();
  }
}

function byName(figures: readonly PhaseFigures[]): Phases {
  return Object.fromEntries(figures.map(each => [each.record.name, each])) as unknown as Phases;
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** On a terminal, a line that the next one replaces. */
function progress(text: string): void {
  if (isTerminal) process.stdout.write(`\r\x1b[2K${toned(text, 'dim', colour)}`);
}

function done(text: string, isGood: boolean): void {
  if (isTerminal) process.stdout.write('\r\x1b[2K');
  print(`${toned(isGood ? 'ok  ' : 'FAIL', isGood ? 'good' : 'bad', colour)}  ${text}`);
}
