// `schema`: prints the JSON Schema of the configuration. The file config.schema.json of the repository is this text.
import { toJsonSchema } from '../config/schema.ts';
import { type CommandIo, parseOptions } from './command.ts';

const usage = 'account-authz schema\n\nPrints the JSON Schema of the configuration file.\n';

export async function schema(args: readonly string[], io: CommandIo): Promise<number> {
  const parsed = parseOptions(args, { help: { type: 'boolean', default: false } });
  if (parsed.kind === 'usage problem') {
    io.stderr.write(`account-authz schema: ${parsed.problem}\n`);
    return 1;
  }
  io.stdout.write(parsed.values.help ? usage : `${JSON.stringify(toJsonSchema(), null, 2)}\n`);
  return 0;
}
