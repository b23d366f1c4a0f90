// Prints what a gateway answered beside what was expected, as a table or as JSON, and what a difference means. Has nothing of the token.
import { alignColumns, listWords, printable } from '../../text/printable.ts';
import type { AskedRequest, GatewayVerification } from './verification.ts';

const maxTextLength = 2048;
const maxListed = 5;
const shown = (text: string): string => printable(text, maxTextLength);

/** `file` is the configuration. */
export function toTable(verification: GatewayVerification, file: string): string {
  const { asked, leftOut, notes, origin } = verification;
  const rows = [
    ['', 'request', 'expected', 'actual'],
    ...asked.map(({ planned, expected, answer: { status, reason, mediaType }, asExpected }) => {
      const actual = reason
        ? `${status} ${reason}`
        : `${status}${mediaType && ` ${mediaType}`}, not from account-authz`;
      return [asExpected ? 'ok' : 'DIFF', planned.name, expected.text, actual].map(shown);
    }),
  ];
  const differences = asked.filter(({ asExpected }) => !asExpected);
  const meanings = differences.map(each => meaningOf(each, verification));
  const looks = new Map(differences.map((each, i) => [meanings[i], lookAt(each, file)]));
  return [
    ...alignColumns(rows),
    '',
    ...Array.from(looks, ([meaning, look]) => {
      const times = meanings.filter(each => each === meaning).length;
      return `${times} of ${asked.length}: ${meaning}\n  look at: ${look}`;
    }),
    ...notes.map(note => `note: ${shown(note)}`),
    ...leftOut
      .filter(({ names }) => names.length > 0)
      .map(({ names, why }) => shown(`${names.length} left out (${why}): ${listWords(names, maxListed)}`)),
    `${shown(origin)}: ${asked.length - differences.length} of ${asked.length} answers as expected`,
    '',
  ].join('\n');
}

export function toJson(verification: GatewayVerification, file: string): string {
  const { asked, leftOut, notes, origin } = verification;
  const value = {
    url: shown(origin),
    requests: asked.map(each => {
      const { planned, expected, answer, asExpected } = each;
      const { status, reason, mediaType } = answer;
      return {
        request: shown(planned.name),
        expected: expected.value,
        actual: { status, reason, mediaType: mediaType === '' ? undefined : shown(mediaType) },
        asExpected,
        ...(!asExpected && { meaning: meaningOf(each, verification), look: lookAt(each, file) }),
      };
    }),
    leftOut: leftOut.flatMap(({ names, why }) => names.map(name => ({ request: shown(name), why: shown(why) }))),
    notes: notes.map(shown),
  };
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

/** What a difference means. */
export function meaningOf({ planned, answer }: AskedRequest, { asked }: Pick<GatewayVerification, 'asked'>): string {
  const { status, reason } = answer;
  const { kind, authorization, place } = planned;
  if (kind === 'admin of Envoy') return "Envoy's admin interface is served: anybody can read its settings and stop it";
  if (status === 503 && reason !== undefined)
    return 'account-authz is asked and cannot decide: it has no usable keys of the issuer, no revocation list that can decide, or an internal fault';
  if (kind === 'public path')
    return 'Envoy calls account-authz for a public path, which account-authz never allows: render again';
  if (kind === 'below a public path')
    return 'a path below a public one is answered otherwise than nonsense there: a rewrite, a route or the server behind may lead it to the protected API without a check';
  if (reason === 'token_missing' && authorization !== undefined)
    return 'the token does not reach account-authz: a proxy or a filter of Envoy removes it before the check';
  if (reason !== undefined)
    return 'account-authz sees another path or host than the client sent (a rewrite before the check), or has another configuration, revocation list or clock than this machine';
  if (status === 404)
    return 'Envoy has no route for this path or this host (render again after a change), or the API answered without a check';
  if (status >= 400)
    return 'Envoy, a filter or a proxy answered in the place of account-authz, whose call may fail, or the API did without a check';
  if (status >= 300)
    return 'a redirect, which is not followed: give verify the URL where the gateway serves the API itself';
  if (!asked.some(each => each.answer.reason !== undefined))
    return 'the API answered, and account-authz refused nothing at all: Envoy does not call it, the URL leads to the API past Envoy, or account-authz does not answer and Envoy lets requests through (`failure_mode_allow`)';
  if (place !== undefined) return `the API answered: account-authz does not see ${place.unseen}`;
  return 'the API answered: Envoy does not call account-authz for this route';
}

function lookAt({ answer: { reason } }: AskedRequest, file: string): string {
  const config = `--config ${shown(file)}`;
  return reason === undefined
    ? `account-authz check-config ${config} --envoy-admin http://127.0.0.1:9901 (beside Envoy), or --envoy FILE; response_code_details in the access log of Envoy`
    : `the decision line of the request in the log of account-authz; account-authz health ${config} (beside it); account-authz explain ${config} --path PATH < token.txt`;
}
