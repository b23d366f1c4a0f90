// Asks a gateway the planned requests, one after the other, and puts what the engine answers here beside each answer.
import type { Config } from '../../config/schema.ts';
import type { IssuerRing } from '../../keys/key-ring.ts';
import type { RevocationList } from '../../revocation/revocation-list.ts';
import { hostAndPort } from '../../text/listen-address.ts';
import type { IssuerKeys } from '../../token/verifier.ts';
import { ask, type Gateway, type GatewayAnswer } from './ask.ts';
import { createExpectation, type Expected } from './expected.ts';
import { falseToken } from './false-token.ts';
import type { GivenToken } from './given-token.ts';
import { maxRequests, type PlannedRequest, planRequests } from './plan.ts';

export interface AskedRequest {
  readonly planned: PlannedRequest;
  readonly expected: Expected;
  readonly answer: GatewayAnswer;
}

export interface GatewayVerification {
  /** The origin of the URL of the gateway. */
  readonly origin: string;
  readonly asked: readonly AskedRequest[];
  readonly leftOut: readonly { readonly names: readonly string[]; readonly why: string }[];
  readonly notes: readonly string[];
  /** Why it is incomplete. */
  readonly failure: string | undefined;
}

/** Stops at the first request without an answer. */
export async function verifyGateway(options: {
  readonly gateway: Gateway;
  readonly config: Config;
  /** By issuer; none where the keys cannot be had. */
  readonly rings: ReadonlyMap<string, IssuerRing>;
  readonly revocations: RevocationList | undefined;
  readonly token: GivenToken | undefined;
}): Promise<GatewayVerification> {
  const { gateway, config, rings, revocations, token } = options;
  const { origin, host } = gateway.url;
  const now = (): number => Date.now() / 1000;
  const falseTokens = config.issuers.map(issuer => {
    const [kid = 'unavailable'] = rings.get(issuer.issuer)?.status().kids ?? [];
    return falseToken(issuer, kid, now());
  });
  const { requests, omitted } = planRequests({ config, host, falseTokens, token });
  const keyRings = new Map(config.issuers.map(({ issuer }) => [issuer, rings.get(issuer) ?? noKeys]));
  const expectationOf = createExpectation({ config, keyRings, revocations, now });
  const asked: AskedRequest[] = [];
  const withoutKeys: string[] = [];
  for (const [i, planned] of requests.entries()) {
    const expected = await expectationOf(planned);
    if (expected.kind === 'refused' && expected.reason === 'keys_unavailable') {
      withoutKeys.push(planned.name);
      continue;
    }
    const answer = await ask(gateway, planned);
    if (answer.kind === 'problem') {
      const leftOut = [{ names: requests.slice(i).map(({ name }) => name), why: 'no answer from the gateway' }];
      const at =
        gateway.connectTo === undefined ? '' : ` at ${hostAndPort(gateway.connectTo.host, gateway.connectTo.port)}`;
      const failure = `${origin} does not answer${at}: ${answer.problem}`;
      return { origin, asked, leftOut, notes: notesOn(asked, token), failure };
    }
    asked.push({ planned, expected, answer });
  }
  const isWhole = withoutKeys.length === 0;
  return {
    origin,
    asked,
    leftOut: [
      { names: omitted, why: `at most ${maxRequests} requests are sent` },
      { names: withoutKeys, why: 'the keys of the issuer cannot be had here' },
    ],
    notes: notesOn(asked, token),
    failure: isWhole ? undefined : 'the keys of the issuer cannot be had here: only requests without them were sent',
  };
}

const unavailable = { kind: 'unavailable', detail: 'no key set yet' } as const;
const noKeys: IssuerKeys = { isInForce: () => false, find: () => unavailable };

function notesOn(asked: readonly AskedRequest[], token: GivenToken | undefined): readonly string[] {
  const notes: string[] = [];
  if (token?.accounts.length === 0) notes.push('the token has no account that its issuer may speak for: none is tried');
  for (const { planned, expected } of asked) {
    if (planned.purpose.kind !== 'own account' || expected.kind !== 'refused') continue;
    const why = `the token itself is refused here (${expected.reason})`;
    notes.push(`${why}, so no allow is shown for "${planned.name}": account-authz explain says why`);
    break;
  }
  if (token === undefined) notes.push('no token on standard input: nothing shows that a good token is allowed');
  const failing = asked.find(
    ({ expected, answer }) => expected.kind === 'passed' && (answer.status === 403 || answer.status >= 500),
  );
  if (failing !== undefined && failing.answer.reason === undefined) {
    const what = `${failing.answer.status} for "${failing.planned.name}" is not from account-authz`;
    notes.push(`${what}: Envoy (is its call of account-authz failing?) or the API wrote it`);
  }
  return notes;
}
