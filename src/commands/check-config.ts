// `check-config`: prints every problem of a configuration and of the Envoy bootstrap beside it, or the effective settings.
import { Document, Scalar, visit } from 'yaml';
import { loadConfig } from '../config/load.ts';
import { formatProblems, type Problem, toProblem } from '../config/problems.ts';
import type { Config } from '../config/schema.ts';
import { parseYamlDocument, type TextProblem } from '../config/yaml-document.ts';
import { lintBootstrap } from '../envoy-lint/lint.ts';
import { type FileContent, loadBoundedFile } from '../files/bounded-file.ts';
import { renderCommandFor } from '../render/rendered-files.ts';
import { isUnprintable, printable, replaceUnprintable } from '../text/printable.ts';
import { type CommandIo, defaultConfigFile, helpOption, parseCommandLine } from './command.ts';

const usage = `account-authz check-config [--config FILE] [--envoy FILE] [--without-files]

Validates a configuration file and the files that it names, without network access.
Prints all problems with file, line and column to standard error, or the effective settings to standard output.

  --config FILE    the configuration, ${defaultConfigFile} if not given
  --envoy FILE     an Envoy bootstrap (YAML or JSON): also reports its settings that are dangerous with this configuration
  --without-files  leaves out the files that the configuration names, for a machine that does not have them

Example: account-authz check-config --config config.yaml --envoy envoy.yaml

Exit code: 0 valid, 1 problems or usage error.
`;

export async function checkConfig(args: readonly string[], io: CommandIo): Promise<number> {
  const options = {
    config: { type: 'string', default: defaultConfigFile },
    envoy: { type: 'string' },
    'without-files': { type: 'boolean', default: false },
    ...helpOption,
  } as const;
  const parsed = parseCommandLine({ name: 'check-config', usage, args, options }, io);
  if (parsed.kind === 'end') return parsed.code;
  const { config: file, envoy } = parsed.values;
  const loaded = await loadConfig(file, { readsNamedFiles: !parsed.values['without-files'] });
  if (loaded.kind === 'misconfiguration') {
    io.stderr.write(formatProblems(file, loaded.problems));
    return 1;
  }
  if (envoy !== undefined) {
    const content = await loadBoundedFile(envoy, maxBootstrapBytes);
    const found = toEnvoyProblems(content, loaded.config);
    if (found.length > 0) {
      io.stderr.write(formatProblems(envoy, found));
      if (content.kind === 'problem') return 1;
      const command = renderCommandFor(content.bytes, file);
      io.stderr.write(`account-authz check-config: to print the settings to use, run: ${command}\n`);
      return 1;
    }
  }
  io.stdout.write(toYaml(loaded.config));
  // A comment, so that the output is a valid configuration.
  if (envoy !== undefined) io.stdout.write(`# ${printable(envoy, 1024)}: no dangerous setting found\n`);
  return 0;
}

// A bootstrap is nested deeper than a configuration, and Envoy knows one tag.
const envoyYaml = { maxDepth: 64, keyTag: '!ignore' } as const;
// Ten thousand routes take more than the megabyte that bounds a configuration.
const maxBootstrapBytes = 4 * 1024 * 1024;

function toEnvoyProblems(loaded: FileContent, config: Config): readonly Problem[] {
  if (loaded.kind === 'problem') return [unreadable({ path: [], position: start, message: loaded.problem })];
  const document = parseYamlDocument(loaded.bytes, envoyYaml);
  const problems = document.problems.map(unreadable);
  if (document.kind === 'document') {
    for (const { path, message } of lintBootstrap(document.value, config)) {
      problems.push(toProblem({ path, position: document.positionOf(path, 'value'), message }));
    }
  }
  return problems.toSorted((one, other) => one.line - other.line || one.column - other.column);
}

const start = { line: 1, column: 1 } as const;

function unreadable(problem: TextProblem): Problem {
  return toProblem({ ...problem, message: `${problem.message} [unreadable-file]` });
}

// The output is a valid configuration, in which lists must not be empty.
function toYaml(config: Config): string {
  const { headers, query, ...others } = config.account;
  const account = { ...(headers.length > 0 ? { headers } : {}), ...(query.length > 0 ? { query } : {}), ...others };
  const document = new Document({ ...config, account }, { aliasDuplicateObjects: false });
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value === 'string' && isUnprintable(node.value)) node.type = Scalar.QUOTE_DOUBLE;
    },
  });
  // Unprintable characters stand in double quotes now, except for the line ends of the document.
  return document
    .toString({ lineWidth: 0 })
    .split('\n')
    .map(line => replaceUnprintable(line, toYamlEscape))
    .join('\n');
}

// YAML 1.2 section 5.7.
function toYamlEscape(character: string): string {
  const code = (character.codePointAt(0) ?? 0).toString(16);
  return code.length > 4 ? `\\U${code.padStart(8, '0')}` : `\\u${code.padStart(4, '0')}`;
}
