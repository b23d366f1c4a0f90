// What `verify` says of each answer that is not as expected: the meaning, and where to look.
import { expect } from 'chai';
import type { Reason } from '../../../src/authz/refusal.ts';
import { placeEntries } from '../../../src/envoy-config/account-places.ts';
import { explainDifference } from '../../../src/offline/verify/comparison.ts';
import type { PlannedRequest } from '../../../src/offline/verify/plan.ts';
import type { AskedRequest } from '../../../src/offline/verify/verification.ts';

type Purpose = PlannedRequest['purpose'];

const statuses = {
  token_missing: 401,
  token_invalid: 401,
  account_mismatch: 403,
  role_forbidden: 403,
  route_unknown: 404,
};
const wanted = (reason: keyof typeof statuses) => ({ kind: 'refused', status: statuses[reason], reason }) as const;
const passed = { kind: 'passed' } as const;
const noToken: Purpose = { kind: 'no token' };
const account = { headers: ['x-account-id'], query: ['account_id'], hosts: [':account_id.api.test'] };
const places = placeEntries({ ...account, parameter: 'account_id', dots: false, case: 'exact' });
const otherIn = (name: string): Purpose => {
  const place = places.find(each => each.name.includes(name));
  if (place === undefined) throw new Error(`no place ${name}`);
  return { kind: 'other account', place };
};
const otherPath = otherIn('path');
const otherHost = otherIn('host');

interface Row {
  readonly purpose?: Purpose;
  readonly expected?: AskedRequest['expected'];
  readonly status: number;
  readonly reason?: Reason;
  readonly isAsked?: boolean;
  readonly isFiltered?: boolean;
  readonly meaning: string;
  readonly look: string;
}

const missing = wanted('token_missing');
const mismatch = wanted('account_mismatch');
const rows: readonly Row[] = [
  { status: 302, meaning: 'a redirect, which is not followed', look: 'the URL where the gateway serves the API' },
  { status: 403, meaning: 'its call of account-authz fails', look: 'account-authz health' },
  { status: 404, meaning: 'Envoy has no route for this path or this host', look: 'account-authz render' },
  { status: 503, meaning: 'Envoy does not reach account-authz', look: 'response_flags' },
  { status: 400, meaning: 'refused the request before the check', look: 'response_code_details' },
  { status: 421, meaning: 'refused the request before the check', look: 'response_code_details' },
  { status: 401, meaning: 'something else than account-authz asks for a token', look: 'check-config' },
  {
    purpose: otherPath,
    expected: mismatch,
    status: 200,
    meaning: 'does not see the path that the API sees',
    look: 'check-config',
  },
  { purpose: otherHost, expected: mismatch, status: 200, meaning: 'does not see the host', look: 'check-config' },
  {
    purpose: otherIn('x-account-id'),
    expected: mismatch,
    status: 200,
    meaning: 'account header x-account-id',
    look: 'check-config',
  },
  {
    purpose: otherIn('parameter account_id'),
    expected: mismatch,
    status: 200,
    meaning: 'query parameter account_id',
    look: 'check-config',
  },
  {
    status: 200,
    isAsked: false,
    isFiltered: false,
    meaning: 'the URL leads to the API past Envoy',
    look: 'docs/upstream.md',
  },
  { status: 200, isAsked: false, meaning: 'account-authz refused nothing at all', look: '--envoy-admin' },
  { status: 200, meaning: 'does not call account-authz for this route', look: '--envoy-admin' },
  { status: 503, reason: 'keys_unavailable', meaning: 'no usable keys', look: 'docs/runbooks.md#accountauthznokeys' },
  { status: 503, reason: 'internal', meaning: 'an internal fault', look: 'docs/runbooks.md#accountauthzinternalfault' },
  {
    purpose: { kind: 'public path' },
    expected: passed,
    status: 404,
    reason: 'route_unknown',
    meaning: 'calls account-authz for a public path',
    look: 'account-authz render',
  },
  { status: 404, reason: 'route_unknown', meaning: 'asked for another path or host', look: 'decision line' },
  {
    expected: wanted('token_invalid'),
    status: 401,
    reason: 'token_missing',
    meaning: 'authorization header does not reach',
    look: 'check-config',
  },
  {
    expected: wanted('route_unknown'),
    status: 401,
    reason: 'token_missing',
    meaning: 'asked for another path than the client sent',
    look: '#accountauthzreloadfailed',
  },
  {
    expected: mismatch,
    status: 401,
    reason: 'account_mismatch',
    meaning: 'another policy, other issuers',
    look: 'account-authz explain',
  },
  {
    expected: passed,
    status: 403,
    reason: 'role_forbidden',
    meaning: 'another policy, other issuers',
    look: 'account-authz explain',
  },
];

describe('a difference that verify finds', () => {
  const surroundings = { isAsked: true, isFiltered: true, file: 'config.yaml' };
  const differenceOf = ({
    purpose = noToken,
    expected = missing,
    status,
    reason,
    isAsked = true,
    isFiltered = true,
  }: Row) => {
    const planned = { purpose, name: 'GET /x', target: '/x', host: 'x', headers: [], authorization: undefined };
    return explainDifference(
      { planned, expected, answer: { kind: 'answer', status, reason } },
      { ...surroundings, isAsked, isFiltered },
    );
  };

  for (const row of rows) {
    const answer = `${row.status} ${row.reason ?? 'not from account-authz'}`;
    it(`is explained for ${answer}, where ${row.expected?.kind === 'passed' ? 'an allow' : (row.expected ?? missing).reason} is expected: ${row.meaning}`, () => {
      const difference = differenceOf(row);
      expect(difference?.meaning).to.contain(row.meaning);
      expect(difference?.look).to.contain(row.look);
    });
  }

  it('is none for the expected refusal, for a bare 404 of Envoy, and for any answer of the API after an allow', () => {
    expect(differenceOf({ status: 401, reason: 'token_missing', meaning: '', look: '' })).to.equal(undefined);
    expect(differenceOf({ expected: wanted('route_unknown'), status: 404, meaning: '', look: '' })).to.equal(undefined);
    expect(differenceOf({ expected: passed, status: 500, meaning: '', look: '' })).to.equal(undefined);
  });
});
