// `check-config`: prints everything that is wrong with a configuration, or the settings that are in effect with it.
import { stringify } from 'yaml';
import { formatProblems, loadConfig } from '../config/load.ts';
import type { Config } from '../config/schema.ts';
import { type CommandIo, defaultConfigFile, parseOptions } from './command.ts';

const usage = `account-authz check-config [--config FILE]

Checks a configuration file and the files that it names, without asking anything of the network.
Prints every problem with its place to standard error, or the effective settings to standard output.

  --config FILE   the configuration, ${defaultConfigFile} if not given

Exit code: 0 good, 1 not.
`;

export async function checkConfig(args: readonly string[], io: CommandIo): Promise<number> {
  const parsed = parseOptions(args, {
    config: { type: 'string', default: defaultConfigFile },
    help: { type: 'boolean', default: false },
  });
  if (parsed.kind === 'usage problem') {
    io.stderr.write(`account-authz check-config: ${parsed.problem}\n`);
    return 1;
  }
  if (parsed.values.help) {
    io.stdout.write(usage);
    return 0;
  }
  const file = parsed.values.config;
  const loaded = await loadConfig(file);
  if (loaded.kind === 'misconfiguration') {
    io.stderr.write(formatProblems(file, loaded.problems));
    return 1;
  }
  io.stdout.write(toYaml(loaded.config));
  return 0;
}

// What is printed is itself a valid configuration, in which a list must not be empty.
function toYaml(config: Config): string {
  const { headers, query } = config.account;
  const account = { ...(headers.length > 0 ? { headers } : {}), ...(query.length > 0 ? { query } : {}) };
  return stringify({ ...config, account }, { aliasDuplicateObjects: false, lineWidth: 0 });
}
