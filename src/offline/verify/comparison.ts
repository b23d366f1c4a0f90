// Compares an answer of a gateway with what is expected, and says what a difference means and where to look.
import type { AskedRequest } from './verification.ts';

export interface Difference {
  readonly meaning: string;
  /** A command or a page. */
  readonly look: string;
}

/** What the words of a difference depend on besides the one answer. */
interface Surroundings {
  /** Whether account-authz refused any of the requests. */
  readonly isAsked: boolean;
  /** Whether something refused the path outside the grammar, as Envoy does. */
  readonly isFiltered: boolean;
  /** The configuration file, printable. */
  readonly file: string;
}

/** Envoy answers these two itself where it has no route, or refuses the path: without a reason. */
const bareReasons = ['route_unknown', 'request_invalid'];

export function answersAsExpected({ expected, answer }: AskedRequest): boolean {
  if (expected.kind === 'passed') return answer.reason === undefined;
  if (answer.status !== expected.status) return false;
  return answer.reason === expected.reason || (answer.reason === undefined && bareReasons.includes(expected.reason));
}

/** Undefined if the answer is as expected. */
export function explainDifference(asked: AskedRequest, surroundings: Surroundings): Difference | undefined {
  if (answersAsExpected(asked)) return undefined;
  return asked.answer.reason === undefined ? foreignAnswer(asked, surroundings) : otherRefusal(asked, surroundings);
}

function commandsOf(file: string) {
  return {
    lint: `account-authz check-config --config ${file} --envoy-admin http://127.0.0.1:9901 (beside Envoy), or --envoy FILE with its bootstrap or dump`,
    health: `account-authz health --config ${file} (beside account-authz), docs/failure-modes.md`,
    explain: `account-authz explain --config ${file} --path PATH < token.txt; the decision line of the request in the log of account-authz`,
    reload: 'docs/runbooks.md#accountauthzreloadfailed; the decision line of the request in the log of account-authz',
  };
}

/** account-authz did not write the answer. The first row that fits says what that means. */
function foreignAnswer(
  { planned: { purpose }, answer: { status } }: AskedRequest,
  { isAsked, isFiltered, file }: Surroundings,
): Difference {
  const { lint, health } = commandsOf(file);
  const place = purpose.kind === 'other account' && isAsked ? purpose.place : undefined;
  const rows: readonly (readonly [fits: boolean, meaning: string, look: string])[] = [
    [
      status >= 300 && status < 400,
      'a redirect, which is not followed',
      'give verify the URL where the gateway serves the API itself',
    ],
    [
      status === 403,
      'Envoy refused by itself: its call of account-authz fails, or another filter or the guard behind the check denies the request',
      `${health}; response_code_details in the access log of Envoy (ext_authz_error, rbac_access_denied); ${lint}`,
    ],
    [
      status === 404,
      'Envoy has no route for this path or this host (perhaps after a rewrite), or the API answered without a check',
      `account-authz render (again, after a change of ${file}); ${lint}`,
    ],
    [
      status >= 500,
      'Envoy does not reach account-authz, or the API without a check',
      `${health}; response_flags in the access log of Envoy (UAEX: the check, UF or UH: the API)`,
    ],
    [
      status === 400 || status === 421,
      'Envoy or a proxy before it refused the request before the check',
      `response_code_details in the access log of Envoy; ${lint}`,
    ],
    [
      status === 401,
      'something else than account-authz asks for a token: a proxy, another filter of Envoy, or the API itself',
      lint,
    ],
    [place !== undefined, `the API answered: account-authz does not see ${place?.unseen}`, lint],
    [
      !isAsked && !isFiltered,
      'the API answered everything, a path that Envoy refuses too: the URL leads to the API past Envoy, or Envoy routes every path without a check',
      `whether the URL is that of Envoy's listener (docs/upstream.md: the API must not be reachable past Envoy); ${lint}`,
    ],
    [!isAsked, 'the API answered, and account-authz refused nothing at all: Envoy does not call account-authz', lint],
  ];
  const [, meaning = 'the API answered: Envoy does not call account-authz for this route', look = lint] =
    rows.find(([fits]) => fits) ?? [];
  return { meaning, look };
}

/** account-authz refused, with another reason than expected. */
function otherRefusal({ planned: { purpose }, expected, answer }: AskedRequest, { file }: Surroundings): Difference {
  const { lint, health, explain, reload } = commandsOf(file);
  const otherConfig = `the running account-authz has another configuration than ${file}`;
  const { reason } = answer;
  const isExpected = (word: string): boolean => expected.kind === 'refused' && expected.reason === word;
  if (reason === 'keys_unavailable')
    return {
      meaning: 'account-authz is asked and has no usable keys of the issuer',
      look: 'docs/runbooks.md#accountauthznokeys; /readyz on admin names the problem for each issuer',
    };
  if (reason === 'internal')
    return {
      meaning: 'account-authz is asked and has an internal fault',
      look: 'docs/runbooks.md#accountauthzinternalfault',
    };
  if (purpose.kind === 'public path')
    return {
      meaning: 'Envoy calls account-authz for a public path, which account-authz never allows',
      look: `account-authz render (again, after a change of ${file}); ${lint}`,
    };
  if (reason === 'route_unknown' || reason === 'request_invalid')
    return {
      meaning: `account-authz is asked for another path or host than the client sent (Envoy or a proxy rewrites it before the check), or ${otherConfig}`,
      look: `route in the decision line of the request in the log of account-authz; ${lint}; ${health}`,
    };
  if (reason === 'token_missing' && !isExpected('request_invalid') && !isExpected('route_unknown'))
    return {
      meaning:
        'the authorization header does not reach account-authz: a proxy or a filter of Envoy removes it before the check',
      look: lint,
    };
  if (isExpected('route_unknown') || isExpected('request_invalid') || reason === 'token_missing')
    return {
      meaning: `account-authz is asked for another path than the client sent, or ${otherConfig}`,
      look: `${reload}; ${lint}`,
    };
  return {
    meaning: `${otherConfig}: another policy, other issuers, another revocation list or another clock`,
    look: `${explain}; ${reload}`,
  };
}
