// Asks a gateway the planned requests, one after the other, and compares each answer with that of the engine here.
import { answerOf, type Reason } from '../../authz/refusal.ts';
import type { Config } from '../../config/schema.ts';
import type { IssuerRing } from '../../keys/key-ring.ts';
import type { ListUnavailable } from '../../revocation/fetched-list.ts';
import type { RevocationList } from '../../revocation/revocation-list.ts';
import { hostAndPort } from '../../text/listen-address.ts';
import type { IssuerKeys } from '../../token/verifier.ts';
import { toCheckRequest } from '../offline/check-request.ts';
import { createRecordedCheck } from '../offline/recorded-check.ts';
import { ask, type Gateway, type GatewayAnswer } from './ask.ts';
import { maxRequests, type PlannedRequest, planRequests } from './plan.ts';
import { falseToken, type GivenToken } from './tokens.ts';

/** What an answer must be; `value` is what JSON has of it. */
export interface Expected {
  readonly text: string;
  readonly value: { readonly status?: number; readonly reason?: Reason | 'allowed'; readonly mediaType?: string };
  readonly isMet: (answer: GatewayAnswer) => boolean;
}

export interface AskedRequest {
  readonly planned: PlannedRequest;
  readonly expected: Expected;
  readonly answer: GatewayAnswer;
  readonly asExpected: boolean;
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

const notHere: Readonly<Partial<Record<Reason | 'allowed', string>>> = {
  keys_unavailable: 'the keys of the issuer cannot be had here',
  revocation_unavailable: 'the revocation list cannot be had here',
};

/** Stops at the first request without an answer. */
export async function verifyGateway(options: {
  readonly gateway: Gateway;
  readonly config: Config;
  /** By issuer; none where the keys cannot be had. */
  readonly rings: ReadonlyMap<string, IssuerRing>;
  readonly revocations: RevocationList | ListUnavailable | undefined;
  readonly token: GivenToken | undefined;
}): Promise<GatewayVerification> {
  const { gateway, config, rings, revocations, token } = options;
  const { origin, host } = gateway.url;
  const falseTokens = config.issuers.map(issuer => {
    const [kid = 'unavailable'] = rings.get(issuer.issuer)?.status().kids ?? [];
    return falseToken(issuer, kid, Date.now() / 1000);
  });
  const { requests, omitted } = planRequests({ config, host, falseTokens, token });
  const keyRings = new Map(config.issuers.map(({ issuer }) => [issuer, rings.get(issuer) ?? noKeys]));
  const check = createRecordedCheck({ config, keyRings, revocations });
  const asked: AskedRequest[] = [];
  const undecidable = new Map<string, PlannedRequest[]>();
  const unanswered: PlannedRequest[] = [];
  let failure: string | undefined;

  async function expectationOf(planned: PlannedRequest): Promise<Expected> {
    const { kind, target, host, headers, authorization, beside, isOpen } = planned;
    if (kind === 'admin of Envoy') return noAdmin;
    const nonsense = asked.find(each => beside !== undefined && each.planned.target === beside)?.answer;
    if (nonsense !== undefined) return likeNonsense(nonsense);
    if (isOpen === true) return passed;
    const request = { method: 'GET', target, headers: [['host', host] as const, ...headers] };
    const message = toCheckRequest({ request, authorization }, gateway.token);
    const { reason } = (await check(message, Date.now() / 1000)).record;
    return reason === 'allowed' ? passed : refused(reason);
  }

  for (const planned of requests) {
    const expected = await expectationOf(planned);
    const why = notHere[expected.value.reason ?? 'allowed'];
    if (failure !== undefined) unanswered.push(planned);
    else if (why !== undefined) undecidable.set(why, [...(undecidable.get(why) ?? []), planned]);
    else {
      const answer = await ask(gateway, planned);
      if (answer.kind === 'answer') {
        asked.push({ planned, expected, answer, asExpected: expected.isMet(answer) });
        continue;
      }
      unanswered.push(planned);
      const to = gateway.connectTo && ` at ${hostAndPort(gateway.connectTo.host, gateway.connectTo.port)}`;
      failure = `${origin} does not answer${to ?? ''}: ${answer.problem}`;
    }
  }
  const leftOut = [
    { requests: unanswered, why: 'no answer from the gateway' },
    ...Array.from(undecidable, ([why, requests]) => ({ requests, why })),
    { requests: omitted, why: `at most ${maxRequests} requests are sent` },
  ];
  for (const why of undecidable.keys()) failure ??= `${why}: only requests without it were sent`;
  return {
    origin,
    asked,
    leftOut: leftOut.map(({ requests, why }) => ({ names: requests.map(({ name }) => name), why })),
    notes: notesOn(asked, token),
    failure,
  };
}

const unavailable = { kind: 'unavailable', detail: 'no key set yet' } as const;
const noKeys: IssuerKeys = { isInForce: () => false, find: () => unavailable };

/** An answer of the API, or of Envoy on its behalf. */
const passed: Expected = {
  text: 'an answer of the API',
  value: { reason: 'allowed' },
  isMet: ({ reason }) => reason === undefined,
};

const noAdmin: Expected = { text: "not Envoy's admin", value: {}, isMet: ({ isAdmin }) => isAdmin !== true };

function likeNonsense({ status, mediaType }: GatewayAnswer): Expected {
  return {
    text: `${status} ${mediaType}, as nonsense there`,
    value: { status, mediaType },
    isMet: answer => answer.status === status && answer.mediaType === mediaType,
  };
}

function refused(reason: Reason): Expected {
  const { httpStatus: status } = answerOf(reason);
  // Envoy answers these two itself where it has no route, or refuses the path: without a reason.
  const reasons: readonly (Reason | undefined)[] =
    reason === 'route_unknown' || reason === 'request_invalid' ? [reason, undefined] : [reason];
  return {
    text: `${status} ${reason}`,
    value: { status, reason },
    isMet: answer => answer.status === status && reasons.includes(answer.reason),
  };
}

function notesOn(asked: readonly AskedRequest[], token: GivenToken | undefined): readonly string[] {
  if (token === undefined) return ['no token on standard input: nothing shows that a good token is allowed'];
  const without = 'the token has no account that its issuer may speak for: none is tried';
  const reasons = asked.flatMap(each =>
    each.planned.kind === 'own account' ? (each.expected.value.reason ?? []) : [],
  );
  const refusal = reasons.find(reason => reason !== 'allowed');
  return [
    ...(token.accounts.length === 0 ? [without] : []),
    ...(refusal ? [`the token itself is refused here (${refusal}): account-authz explain says why`] : []),
  ];
}
