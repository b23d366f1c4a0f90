// `init`: prints a first configuration from a token on standard input and an OpenAPI document.
import { validateConfig } from '../config/load.ts';
import { memberOf } from '../json/strict-json.ts';
import { printable } from '../text/printable.ts';
import { keyUrlProblem } from '../text/url.ts';
import { parseCompactJws } from '../token/compact.ts';
import { decideFirst } from '../toolkit/init/first-check.ts';
import { writeFirstConfig } from '../toolkit/init/first-config.ts';
import { findKeys } from '../toolkit/init/issuer-keys.ts';
import { loadOpenApi } from '../toolkit/openapi/document.ts';
import { readOperations } from '../toolkit/openapi/operations.ts';
import { formatCoverageProblems } from '../toolkit/openapi/report.ts';
import { CommandError, defineCommand, misconfigured } from './command.ts';
import { proxyOf, readAuthorization, requireSafeEnvironment } from './command-input.ts';

const usage = `account-authz init [--issuer URL] [--openapi FILE] [--base-path PATH] [--offline] < token.txt > config.yaml

Prints a first configuration, and on standard error what it took from where. Asks the issuer of the token for its metadata and its
keys, and verifies the token with them. What a person must choose stands under "# choose:". Reads the token from standard input, and
prints of it names of claims, iss, aud, alg, typ and roles alone.

  --issuer URL      whose metadata is asked, in the place of the issuer that the token names
  --openapi FILE    an OpenAPI document 3.0 to 3.2, or Swagger 2.0: its operations give routes and public routes
  --base-path PATH  where the API stands, in the place of what the document says about its servers
  --offline         asks nobody

Example: account-authz init --openapi openapi.yaml < token.txt > config.yaml

Exit code: 0 made, 3 made and something must be chosen, 1 usage error, or a token or document that cannot be read.
`;

export const command = defineCommand({
  name: 'init',
  usage,
  options: {
    issuer: { type: 'string' },
    openapi: { type: 'string' },
    'base-path': { type: 'string' },
    offline: { type: 'boolean', default: false },
  },
  async run({ values, io }) {
    const { issuer: from, openapi, 'base-path': basePath, offline } = values;
    const urlProblem = from === undefined ? undefined : keyUrlProblem(from);
    if (urlProblem !== undefined) throw new CommandError(`--issuer ${urlProblem}`);
    if (basePath !== undefined && !/^(?:$|\/)/.test(basePath))
      throw new CommandError('--base-path must start with "/"');
    requireSafeEnvironment(io.env);
    const operations = openapi === undefined ? undefined : await loadOperations(openapi, basePath);
    const authorization = await readAuthorization('init', io);
    if (authorization === undefined) throw new CommandError('a token is required on standard input');
    const token = authorization.replace(/^bearer +/i, '');
    const jws = parseCompactJws(token);
    if (jws.kind === 'refusal') throw new CommandError(unreadable(token, jws.detail));
    const iss = memberOf(jws.payload, 'iss');
    const issuer = typeof iss === 'string' ? iss : '';
    const keys = offline ? undefined : await findKeys(jws, token, { issuer, from, proxy: proxyOf(io.env) });

    const say = (line: string): void => {
      io.stderr.write(`account-authz init: ${printable(line, 2048)}\n`);
    };
    const now = Date.now() / 1000;
    const { text, taken, choices } = writeFirstConfig({ jws, tokenBytes: token.length, keys, operations, now });
    const loaded = await validateConfig({ kind: 'bytes', bytes: Buffer.from(text) }, 'config.yaml', {
      readsNamedFiles: false,
    });
    if (loaded.kind === 'misconfiguration') throw misconfigured('the configuration that would be printed', loaded);
    const verified = keys?.verified ?? { kind: 'problem', problem: 'nobody was asked (--offline)' };
    if (verified.kind === 'problem') say(`the signature of the token is NOT verified: ${verified.problem}`);
    else say(`the signature of the token is verified with a key of ${verified.url}`);
    const sent = { authorization, exp: memberOf(jws.payload, 'exp') };
    const check = verified.kind === 'key' ? await decideFirst(loaded.config, sent, verified.key, now) : undefined;
    if (check?.isExpired === true) say('the token has expired: the configuration is for others like it');
    for (const line of taken) say(line);
    const refused =
      choices.length > 0 || check?.refused === undefined ? [] : [`the token is refused: ${check.refused}`];
    const all = [...choices, ...refused];
    for (const line of all) say(`choose ${line}`);
    io.stdout.write(`${refused.map(line => `# choose: ${printable(line, 2048)}\n`).join('')}${text}`);
    return all.length > 0 ? 3 : 0;
  },
});

async function loadOperations(file: string, basePath: string | undefined) {
  const document = await loadOpenApi(file);
  const { operations, problems } =
    document.kind === 'problem'
      ? { operations: [], problems: [{ severity: 'error', message: document.problem } as const] }
      : readOperations(document, basePath);
  if (problems.length > 0) throw new CommandError(formatCoverageProblems(file, problems), { areLines: true });
  return operations;
}

/** Why no claim of the token can be read, and what to ask the provider for. */
function unreadable(token: string, detail: string): string {
  const segments = token.split('.').length;
  if (segments === 5)
    return 'the token is encrypted (five segments), so nothing of it can be read: ask the provider for access tokens that are signed and not encrypted';
  if (segments === 1)
    return 'the token is opaque (no JWT), so nothing of it can be read: ask the provider for JWT access tokens, often by naming your API as the audience or resource of the request';
  return `the token cannot be read: ${detail}`;
}
