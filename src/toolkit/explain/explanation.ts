// Explains an answer of the engine check by check: passed, failed and why, or not reached. Decides nothing itself.
import type { DecisionWord } from '../../authz/authorize.ts';
import { type CheckName, checkNames, isAfter } from '../../authz/checks.ts';
import type { PermissionKind } from '../../authz/permission.ts';
import type { Reason } from '../../authz/refusal.ts';
import { printable } from '../../text/printable.ts';
import { findDifference, grantFor, matchOf } from './differences.ts';
import { duration, formatList, instant, issuerIn, type Known, keyAge, listAge } from './known.ts';
import { findRefusedCheck } from './refused-checks.ts';

export interface Answer {
  readonly decision: DecisionWord;
  readonly reason: Reason | 'allowed';
  /** HTTP status for the client; 200 where the request is passed on, which leaves it to the upstream. */
  readonly status: number;
  /** What the client gets with a refusal, what the upstream gets with an allow. */
  readonly headers: Readonly<Record<string, string>>;
  /** With an allow and `forwardClaims`: whether each of their headers is sent. Their values are shown nowhere. */
  readonly forwarded?: Readonly<Record<string, boolean>>;
}

type Verdict = 'pass' | 'fail' | 'not reached';

interface CheckVerdict {
  readonly name: CheckName | 'service';
  readonly verdict: Verdict;
  readonly detail: string;
}

export interface Explanation extends Answer {
  readonly checks: readonly CheckVerdict[];
}

/** Enough for eight long names from the settings. */
const maxDetailLength = 4096;

/** `detail` is that of the log; undefined for an allow. */
export function explainAnswer(answer: Answer, detail: string | undefined, known: Known): Explanation {
  const { reason } = answer;
  if (reason === 'allowed') return { ...answer, checks: checkNames.map(name => passed(name, known)) };
  const refused = findRefusedCheck(reason, detail ?? '');
  const difference = findDifference(refused, known);
  const found = known.found === undefined ? '' : `: ${known.found}`;
  const others = known.wrongClaims.filter(each => !each.endsWith(found || `${detail}`));
  const also = others.length === 0 ? '' : `; also: ${others.join('; ')}`;
  const why = `${detail ?? reason}${found}${also}: ${refused.remedy}${difference ? ` (${difference})` : ''}`;
  const failed: CheckVerdict = { name: refused.check, verdict: 'fail', detail: printable(why, maxDetailLength) };
  const { check } = refused;
  // After an internal error nothing is known about the checks.
  if (check === 'service') return { ...answer, checks: [failed, ...checkNames.map(notReached)] };
  const checks = checkNames.map(name => {
    if (name === check) return failed;
    return isAfter(name, check) ? notReached(name) : passed(name, known);
  });
  return { ...answer, checks };
}

function notReached(name: CheckName): CheckVerdict {
  return { name, verdict: 'not reached', detail: '' };
}

function passed(name: CheckName, known: Known): CheckVerdict {
  const found = findings[name];
  const detail = typeof found === 'string' ? found : found(known);
  return { name, verdict: 'pass', detail: printable(detail, maxDetailLength) };
}

const listLeftOut = 'not judged: --without-files leaves out the list';

/** What a check found that passed. */
const findings: Readonly<Record<CheckName, string | ((known: Known) => string)>> = {
  message: 'consistent',
  method: ({ method }) => method,
  path: 'inside the grammar',
  authorization: 'no more than one value',
  'account-places': 'unambiguous',
  host: ({ config }) => (config.account.hosts === undefined ? 'unambiguous' : 'in the grammar of hosts'),
  route: ({ route }) => route ?? 'one of routes',
  'token-present': 'the request has a bearer token',
  'token-origin': 'a page of token.origins, or none is asked for',
  'token-length': ({ tokenLength, config }) => `${tokenLength} of ${config.token.maxBytes} bytes`,
  'token-format': 'a signed JWT in its compact form',
  issuer: ({ principal, keys }) => principal?.iss ?? keys?.issuer ?? 'one of issuers',
  algorithm: 'one of algorithms',
  'token-type': 'one of tokenTypes',
  key: ({ keys, config }) =>
    keys
      ? `a key of the issuer, ${keyAge(keys)}; one that it replaced under its old kid may stay in serve for keys.refreshSeconds (${config.keys.refreshSeconds} s)`
      : 'a key of the issuer',
  signature: 'verifies with that key',
  audience: 'names one of audiences',
  claims: 'complete and inside their grammar',
  binding: 'to nothing, or to the certificate of the client',
  times: 'already valid, lifetime within token.maxLifetimeSeconds',
  expiry: remaining,
  'revocation-list': ({ config, list }) => {
    if (config.revocation?.url === undefined) return 'no list by URL is configured';
    return list === undefined ? listLeftOut : listAge(list);
  },
  revocation({ config, leavesOutList }) {
    if (config.revocation === undefined) return 'no list is configured';
    return leavesOutList ? listLeftOut : 'no entry matches';
  },
  app: ({ principal }) => principal?.app ?? 'one of apps',
  'account-named': 'no two places of the request name different accounts',
  'issuer-account': known => `one of accounts of the issuer: ${formatList(issuerIn(known)?.accounts ?? [])}`,
  account: ({ principal }) => `${principal?.acc ?? 'it'} is an account of the token`,
  role: known => mayUse('roles', known, known.principal?.role),
  scope: known => mayUse('scopes', known, known.principal?.scope),
};

function mayUse(kind: PermissionKind, { config, request, method }: Known, name: string | undefined): string {
  if (config[kind] === undefined) return `no ${kind} are configured`;
  const match = matchOf(request.target, config);
  const entry = name === undefined ? undefined : config[kind].get(name);
  const grant = entry && match && grantFor(entry, method, match);
  return grant === undefined
    ? 'one may use the method, or none is asked for'
    : `${name} may ${method} here, by "${grant}"`;
}

function remaining({ times, now }: Known): string {
  if (times?.exp === undefined) return 'not yet';
  const { exp } = times;
  const left = exp - now;
  return left > 0
    ? `in ${duration(left)}, at ${instant(exp)}`
    : `at ${instant(exp)}, within the tolerance of the clocks`;
}
