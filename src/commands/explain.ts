// `explain`: prints what the service would answer to a request and why.
import type { DecisionWord } from '../authz/authorize.ts';
import { isTokenLine } from '../authz/token-places.ts';
import { parseInstant } from '../text/instant.ts';
import { printableValue } from '../text/printable.ts';
import { checkLive } from '../toolkit/explain/live-check.ts';
import { createPaint, reportLive, wantsColour } from '../toolkit/explain/report.ts';
import { isHeaderName, isHeaderValue } from '../toolkit/offline/check-request.ts';
import { CommandError, defaultConfigFile, defineCommand } from './command.ts';
import { loadCertificates, loadFetchSettings, readAuthorization } from './command-input.ts';

const usage = `account-authz explain [--config FILE] --path PATH [options]

Decides one request as the service would, with keys fetched now. Shows for each check whether it passed, and what to change if not.
Reads the token from standard input and never prints it; empty input is a request without a token.

  --config FILE           the configuration, ${defaultConfigFile} if not given
  --path PATH             path and query as Envoy would send them
  --method METHOD         GET if not given
  --header 'NAME: VALUE'  a header of the request, any number of times; not authorization
  --certificate FILE      the certificate that the client shows, for a token that is bound to one (PEM; of a chain the first)
  --at TIME               time of the check, now if not given (RFC 3339, or seconds since 1970)
  --without-files         leaves out the certificates and the revocation list that the configuration names, by file or URL, for a
                          machine that does not have them
  --json                  prints { decision, reason, status, headers, checks: [{ name, verdict, detail }] }

Example: account-authz explain --config config.yaml --path /api/subscriptions < token.txt

Exit code: 0 allow, 3 deny, 4 cannot decide, 1 invalid configuration or usage error.
`;

const exitCodes = { allow: 0, deny: 3, unavailable: 4 } as const satisfies Record<DecisionWord, number>;

export const command = defineCommand({
  name: 'explain',
  usage,
  options: {
    config: { type: 'string' },
    path: { type: 'string' },
    method: { type: 'string' },
    header: { type: 'string', multiple: true },
    certificate: { type: 'string' },
    at: { type: 'string' },
    'without-files': { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
  async run({ values, io }) {
    const { config: file = defaultConfigFile, path, method = 'GET', header = [], at, json } = values;
    const paint = createPaint(wantsColour(io.env, io.stdout.isTTY === true));
    if (path === undefined) throw new CommandError('--path is required: the path and query of the request');
    const headers = parseHeaders(header);
    const now = at === undefined ? undefined : parseInstant(at);
    if (at !== undefined && now === undefined)
      throw new CommandError('--at must be an RFC 3339 time or seconds since 1970');
    const settings = await loadFetchSettings('explain', file, io, { readsNamedFiles: !values['without-files'] });
    if (headers.some(([name, value]) => isTokenLine(settings.config.token.from, name, value)))
      throw new CommandError('--header must not be a place of the token: pass the token on standard input');
    if (settings.config.account.hosts !== undefined && !headers.some(([name]) => name === 'host'))
      throw new CommandError(
        "--header 'host: NAME' is required: account.hosts names the hosts that requests may be for",
      );
    const [certificate] = await loadCertificates('--certificate', values.certificate);
    const authorization = await readAuthorization('explain', io);

    const live = await checkLive({
      ...settings,
      leavesOutList: values['without-files'],
      request: { method, target: path, headers, certificate },
      authorization,
      now: now ?? Date.now() / 1000,
    });
    io.stdout.write(json ? toJson(live.explanation) : reportLive(live, paint));
    return exitCodes[live.explanation.decision];
  },
});

/** The same as in the text report. */
const maxTextLength = 4096;

function toJson(value: unknown): string {
  return `${JSON.stringify(printableValue(value, maxTextLength), undefined, 2)}\n`;
}

function parseHeaders(texts: readonly string[]): readonly (readonly [name: string, value: string])[] {
  return texts.map(text => {
    const colon = text.indexOf(':');
    const name = text.slice(0, Math.max(colon, 0)).toLowerCase();
    const value = text.slice(colon + 1);
    if (!isHeaderName(name) || !isHeaderValue(value))
      throw new CommandError("--header must be 'NAME: VALUE' without control characters");
    if (name === 'authorization')
      throw new CommandError('--header must not be authorization: pass the token on standard input');
    return [name, value.replace(/^[ \t]+/, '').replace(/(?<![ \t])[ \t]+$/, '')];
  });
}
