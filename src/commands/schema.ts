// `schema`: prints the JSON Schema of the configuration. The file config.schema.json of the repository is this text.
import { toJsonSchema } from '../config/schema.ts';
import { defineCommand } from './command.ts';

const usage =
  'account-authz schema\n\nPrints the JSON Schema (draft 2020-12) of the configuration file.\n\nExample: account-authz schema > config.schema.json\n';

export const command = defineCommand({
  name: 'schema',
  usage,
  options: {},
  async run({ io }) {
    io.stdout.write(`${JSON.stringify(toJsonSchema(), null, 2)}\n`);
    return 0;
  },
});
