// `verify`: asks a running gateway from outside, and says whether it does what the configuration says.
import { createSecureContext } from 'node:tls';
import { hasPlace } from '../authz/token-places.ts';
import { rootsInForce } from '../http/fetch.ts';
import { KeyFileError } from '../keys/key-ring.ts';
import { version } from '../package.ts';
import { loadRevocations } from '../revocation/revocation-file.ts';
import type { RevocationList } from '../revocation/revocation-list.ts';
import { parsePeerAddress } from '../text/listen-address.ts';
import { type FetchedKeys, type FetchSettings, fetchKeys } from '../toolkit/offline/fetched-keys.ts';
import { fetchRevocations } from '../toolkit/offline/fetched-revocations.ts';
import { gatewayRule, parseGatewayUrl } from '../toolkit/verify/ask.ts';
import { hostEntryOf, maxRequests } from '../toolkit/verify/plan.ts';
import { toJson, toTable } from '../toolkit/verify/report.ts';
import { readGivenToken } from '../toolkit/verify/tokens.ts';
import { verifyGateway } from '../toolkit/verify/verification.ts';
import { CommandError, defaultConfigFile, defineCommand } from './command.ts';
import { loadCertificates, loadFetchSettings, readAuthorization } from './command-input.ts';

const usage = `account-authz verify URL [--config FILE] [--connect-to HOST:PORT] [--allow-http] [--ca FILE] [--json]

Asks a running gateway from outside and says whether it does what the configuration says. It sends GET requests without a body, at
most ${maxRequests}: without a token, with a false signature, for another account, for a path that no route matches, and last the token's own
account. Reads a token from standard input and never prints it; empty input is no token. Connects to URL alone, or to the address of
--connect-to, and follows no redirect.

  URL                     https://HOST or https://HOST:PORT of the gateway (http for loopback addresses, or with --allow-http)
  --config FILE           the configuration, ${defaultConfigFile} if not given
  --connect-to HOST:PORT  connects there; the name in TLS and the Host header stay those of URL: for a port-forward, or a gateway
                          without a DNS name yet
  --allow-http            URL may be http to any host, inside a mesh or a cluster
  --ca FILE               trusts these certificate authorities too: a PEM file
  --json                  prints { url, requests: [{ request, expected, actual, asExpected, meaning, look }], leftOut, notes }

Example: account-authz verify https://gateway.example --config config.yaml < token.txt

Exit code: 0 as expected, 3 not, 1 invalid configuration, usage error, no answer within 5 seconds, or no keys here.
`;

export const command = defineCommand({
  name: 'verify',
  usage,
  options: {
    config: { type: 'string' },
    'connect-to': { type: 'string' },
    'allow-http': { type: 'boolean', default: false },
    ca: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
  maxOperands: 1,
  async run({ values, operands: [operand], io }) {
    const { config: file = defaultConfigFile, ca: caFile, json } = values;
    const url = operand === undefined ? undefined : parseGatewayUrl(operand, { allowHttp: values['allow-http'] });
    if (url === undefined) throw new CommandError(gatewayRule);
    const to = values['connect-to'];
    const connectTo = to === undefined ? undefined : parsePeerAddress(to);
    if (connectTo?.kind === 'problem') throw new CommandError(`--connect-to ${connectTo.problem}`);
    const trusted = caFile === undefined ? undefined : [...rootsInForce(), ...(await loadCertificates('--ca', caFile))];
    const secureContext = trusted && createSecureContext({ ca: trusted });
    // The machine has the files of the service only by chance.
    const settings = await loadFetchSettings('verify', file, io, { readsNamedFiles: false });
    const { config } = settings;
    if (config.account.hosts !== undefined && hostEntryOf(config.account, url.hostname) === undefined)
      throw new CommandError('URL must have a host that an entry of account.hosts matches');
    // A terminal would wait for input, and the token is optional.
    const authorization = io.stdin.isTTY === true ? undefined : await readAuthorization('verify', io);

    const revocations = await fetchRevocations(settings, await loadRevocationList(settings));
    const token = authorization === undefined ? undefined : readGivenToken(authorization, config);
    const { rings, stop } = await loadKeys(settings);
    try {
      const userAgent = `account-authz-verify/${version}`;
      const isSocket = (place: (typeof config.token.from)[number]): boolean => hasPlace([place], 'subprotocol');
      // A handshake asks for a WebSocket, so it is sent only where nothing else may have the token.
      const from = config.token.from.toSorted((one, other) => Number(isSocket(one)) - Number(isSocket(other)));
      const gateway = { url, connectTo, token: { ...config.token, from }, secureContext, userAgent };
      const verification = await verifyGateway({ gateway, config, rings, revocations: revocations.list, token });
      if (json || verification.asked.length > 0)
        io.stdout.write(json ? toJson(verification, file) : toTable(verification, file));
      if (verification.failure !== undefined) throw new CommandError(verification.failure);
      return verification.asked.every(({ asExpected }) => asExpected) ? 0 : 3;
    } finally {
      await stop();
    }
  },
});

/** Without issuers with a jwksFile where one is not on this machine. */
async function loadKeys(settings: FetchSettings): Promise<FetchedKeys> {
  try {
    return await fetchKeys(settings);
  } catch (error) {
    if (!(error instanceof KeyFileError)) throw error;
    settings.onWarning(error.message);
    const { config } = settings;
    const issuers = config.issuers.filter(({ jwksFile }) => jwksFile === undefined);
    return loadKeys({ ...settings, config: { ...config, issuers } });
  }
}

/** What cannot be read is a warning: the list is on the machine of the service. */
async function loadRevocationList({ config, onWarning }: FetchSettings): Promise<RevocationList | undefined> {
  const { revocation } = config;
  if (revocation?.file === undefined) return undefined;
  const loaded = await loadRevocations(revocation.file);
  if (loaded.kind === 'revocations') return loaded.list;
  const why = loaded.kind === 'problem' ? loaded.problem : `line ${loaded.problems[0]?.line} is invalid`;
  onWarning(`revocation.file: ${why}: a revoked token is expected to be allowed`);
  return undefined;
}
