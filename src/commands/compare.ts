// `compare`: says who may do what under a new configuration that he may not under the old one, and the opposite.
import { maxConfigBytes, readConfigFile } from '../config/load.ts';
import { formatProblems } from '../config/problems.ts';
import type { FileContent } from '../files/bounded-file.ts';
import { readStart } from '../http/send-request.ts';
import { problem } from '../text/problem.ts';
import { compareConfigs } from '../toolkit/compare/comparison.ts';
import { toJson, toMarkdown, toReport } from '../toolkit/compare/report.ts';
import { validateCompared } from '../toolkit/compare/settings.ts';
import { CommandError, type CommandIo, defineCommand } from './command.ts';

const usage = `account-authz compare OLD NEW [--json|--markdown] [--strict]

Says who may do what under the configuration NEW that he may not under OLD (more), the opposite (less), what else clients or
upstreams see (other), and which changed settings cannot be ordered (unordered). Each row of permissions has an example, which
account-authz test answers as the row says. Reads neither the files that the configurations name nor the network.

  OLD, NEW       configuration files; one of them may be -, standard input
  --json         the rows as JSON
  --markdown     the rows as tables for a pull request, at most 60,000 characters
  --strict       exit code 3 for any row

Example: git show main:config.yaml | account-authz compare - config.yaml

Exit code: 0 nothing more is allowed, 3 more is, or something cannot be ordered, 1 usage error, invalid configuration or a comparison that
is not complete.
`;

export const command = defineCommand({
  name: 'compare',
  usage,
  options: {
    json: { type: 'boolean', default: false },
    markdown: { type: 'boolean', default: false },
    strict: { type: 'boolean', default: false },
  },
  maxOperands: 2,
  async run({ values, operands, io }) {
    const [before, after] = operands;
    if (before === undefined || after === undefined)
      throw new CommandError('two configurations are required: account-authz compare OLD NEW');
    if (before === '-' && after === '-') throw new CommandError('OLD and NEW must not both be -: one is a file');
    if (values.json && values.markdown) throw new CommandError('--json and --markdown must not be set together');
    const contents = [await read(before, io), await read(after, io)] as const;
    // Both in one folder: a relative file name is the same file then.
    const [old, now] = [await validateCompared(contents[0]), await validateCompared(contents[1])];
    const problems = [
      old.kind === 'misconfiguration' ? formatProblems(`OLD ${nameOf(before)}`, old.problems) : '',
      now.kind === 'misconfiguration' ? formatProblems(`NEW ${nameOf(after)}`, now.problems) : '',
    ].join('');
    if (old.kind === 'misconfiguration' || now.kind === 'misconfiguration')
      throw new CommandError(problems, { areLines: true });
    const progress = createProgress(io);
    const comparison = compareConfigs([old, now], { onQuestions: progress.show });
    progress.clear();
    if (values.json) io.stdout.write(toJson(comparison));
    else io.stdout.write(values.markdown ? toMarkdown(comparison) : toReport(comparison));
    const { more, less, other, unordered, complete } = comparison;
    if (!complete) return 1;
    const counted = [...more, ...unordered, ...(values.strict ? [...less, ...other] : [])];
    return counted.length > 0 ? 3 : 0;
  },
});

async function read(file: string, { stdin }: CommandIo): Promise<FileContent> {
  if (file !== '-') return readConfigFile(file);
  const bytes = await readStart(stdin, maxConfigBytes + 1);
  if (bytes.length <= maxConfigBytes) return { kind: 'bytes', bytes };
  return { ...problem(`standard input is larger than ${maxConfigBytes} bytes`), reason: 'too large' };
}

function nameOf(file: string): string {
  return file === '-' ? 'standard input' : file;
}

/** On a terminal, after a second. */
function createProgress({ stderr }: CommandIo) {
  const start = performance.now();
  let shown = start + 750;
  let isShown = false;
  return {
    show(asked: number): void {
      const now = performance.now();
      if (stderr.isTTY !== true || now - shown < 250) return;
      shown = now;
      isShown = true;
      stderr.write(`\r${asked.toLocaleString('en')} questions asked`);
    },
    clear(): void {
      if (isShown) stderr.write('\r\x1b[K');
    },
  };
}
