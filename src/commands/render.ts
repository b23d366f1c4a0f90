// `render`: prints or writes what Envoy must be told for a configuration.
import { readConfigFile, validateConfig } from '../config/load.ts';
import { namedFiles } from '../config/named-files.ts';
import { formatProblems } from '../config/problems.ts';
import { defaultOptions, toEnvoySettings } from '../toolkit/envoy-settings/settings.ts';
import { limitsOf } from '../toolkit/render/capabilities.ts';
import { withListen } from '../toolkit/render/default-listen.ts';
import { addressProblem, optionsHelp, optionTypes, originProblem, parseOptions } from '../toolkit/render/options.ts';
import { type NamedText, toCommandLine, toMarkedText, writeRenderedFiles } from '../toolkit/render/rendered-files.ts';
import { type Target, targets } from '../toolkit/render/targets.ts';
import { unusedUpstream } from '../toolkit/render/upstreams.ts';
import { CommandError, type CommandIo, defaultConfigFile, defineCommand } from './command.ts';

const usage = `account-authz render TARGET [--config FILE] [options]

Prints the Envoy settings that a configuration needs: paths, headers, timeouts, retries, TLS.

Targets:
${Object.entries(targets)
  .map(([name, { summary }]) => `  ${name.padEnd(16)}${summary}\n`)
  .join('')}
Options:
  --config FILE                 the configuration, ${defaultConfigFile} if not given
${optionsHelp}  --out DIR                     writes files into this folder; replaces only unedited files of render
  --force                       with --out: replaces edited files of render too

Example: account-authz render envoy --config config.yaml --upstream 127.0.0.1:3000 > envoy.yaml

Exit code: 0 done, 1 invalid configuration or usage error.
`;

const options = {
  config: { type: 'string', default: defaultConfigFile },
  ...optionTypes,
  out: { type: 'string' },
  force: { type: 'boolean', default: false },
} as const;

export const command = defineCommand({
  name: 'render',
  usage,
  options,
  maxOperands: 1,
  async run({ values, operands: [operand], args, io }) {
    const { config: file, out, force, ...chosenOptions } = values;
    const [name = '', ...rest] = args;
    const target = operand === name && Object.hasOwn(targets, name) ? targets[name] : undefined;
    if (target === undefined)
      throw new CommandError(`the first argument must be a target: ${Object.keys(targets).join(', ')}`);
    const given = parseOptions(chosenOptions);
    const chosen = { ...defaultOptions, ...target.defaults, ...(typeof given === 'string' ? undefined : given) };
    const dataPlane = target.dataPlane(chosen);
    const instead: Readonly<Record<string, string | undefined>> = dataPlane.instead;
    for (const option of Object.keys(chosenOptions)) {
      const isForeign = !hasOption(target, option);
      if (isForeign || instead[option] !== undefined)
        throw new CommandError(
          `${isForeign ? name : dataPlane.title} has no setting like --${option}: ${instead[option] ?? ownersOf(option)}`,
        );
    }
    if (typeof given === 'string') throw new CommandError(given);
    if (force && out === undefined) throw new CommandError('--force needs --out');

    const content = await readConfigFile(file);
    const written = await validate(content);
    if (written.kind === 'misconfiguration' || content.kind === 'problem') {
      io.stderr.write(written.kind === 'misconfiguration' ? formatProblems(file, written.problems) : '');
      return 1;
    }
    const text = Buffer.from(content.bytes).toString();
    const configText = (target.listen && withListen(text, target.listen)) ?? text;
    const loaded = configText === text ? written : await validate({ ...content, bytes: Buffer.from(configText) });
    if (loaded.kind === 'misconfiguration')
      throw new CommandError(`write into the configuration: listen: ${target.listen}`);
    const problem =
      originProblem(loaded.config.token, chosen) ??
      addressProblem(loaded.config, chosen, option => hasOption(target, option));
    if (problem !== undefined) throw new CommandError(problem);
    const settings = {
      ...chosen,
      ...toEnvoySettings(loaded.config, chosen),
      graceSeconds: loaded.config.shutdown.graceSeconds,
      maxTokens: loaded.config.cache.maxTokens,
      namedFiles: namedFiles(loaded.config, '/'),
      cacheDirectory: loaded.config.keys.cacheDirectory,
      configText,
    };
    const unused = unusedUpstream(settings);
    if (unused !== undefined) throw new CommandError(unused);
    const unfit = target.problem?.(settings);
    if (unfit !== undefined) throw new CommandError(`${unfit}, for ${name}`);

    const warning = target.warning?.(settings);
    if (warning !== undefined) io.stderr.write(`account-authz render: ${warning}\n`);
    const commandLine = toCommandLine(['account-authz', 'render', name, ...withoutOut(rest)]);
    const [first, ...others] = target.files(settings);
    const limited = { ...first, introduction: [...limitsOf(dataPlane), ...first.introduction] };
    const made = [limited, ...others].filter(({ content }) => content.length > 0);
    const files = made.map(each => ({ name: each.name, text: toMarkedText(each, commandLine) }));
    if (out === undefined) return print(target, files, io);
    const failure = await writeRenderedFiles(out, files, { replacesEdited: force });
    if (failure !== undefined) throw new CommandError(failure);
    io.stdout.write(files.map(each => `${each.name}\n`).join(''));
    return 0;
  },
});

// It may run on another machine than the service, so names of files are those of the container.
function validate(content: Awaited<ReturnType<typeof readConfigFile>>): ReturnType<typeof validateConfig> {
  return validateConfig(content, defaultConfigFile, { readsNamedFiles: false });
}

function print({ isForEnvoy = false }: Target, files: readonly NamedText[], io: CommandIo): number {
  const [first, ...others] = files;
  if (!isForEnvoy) {
    const named = files.map(({ name, text }) => text.replace('\n', `\n# File: ${name}\n`));
    io.stdout.write(named.join('---\n'));
    return 0;
  }
  io.stdout.write(first?.text ?? '');
  if (others.length > 0) {
    const names = others.map(({ name }) => name).join(', ');
    io.stderr.write(`account-authz render: Envoy also reads ${names}: use --out DIR to write all files\n`);
  }
  return 0;
}

function hasOption({ options }: Target, option: string): boolean {
  return options.some(each => each === option);
}

function ownersOf(option: string): string {
  const owners = Object.entries(targets).flatMap(([name, target]) => (hasOption(target, option) ? name : []));
  return `leave it out, it is for ${owners.join(', ')}`;
}

function withoutOut(args: readonly string[]): readonly string[] {
  return args.filter((each, i) => !/^--(?:out(?:=|$)|force$)/.test(each) && args[i - 1] !== '--out');
}
