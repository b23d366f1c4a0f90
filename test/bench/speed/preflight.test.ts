import { expect } from 'chai';
import { problemOf } from '../../../bench/speed/preflight.ts';
import { authorizationService, type CheckResponseMessage } from '../../../src/envoy/protocol.ts';

const bytes = (message: CheckResponseMessage): Buffer => authorizationService.Check.responseSerialize(message);
const allowFor = (account: string): Buffer =>
  bytes({
    status: { code: 0 },
    ok_response: { headers: [{ header: { key: 'x-auth-acc', value: account } }], headers_to_remove: [] },
  });
const deny = (status: number): Buffer =>
  bytes({ status: { code: 7 }, denied_response: { status: { code: status }, headers: [], body: '' } });
const allow = allowFor('acct-1');

describe('the check of a contender before it is timed', () => {
  const rows = [
    ['an allow for the account', 'peer', allow, 200, undefined],
    ['an allow for another account', 'peer', allowFor('acct-2'), 200, 'x-auth-acc is acct-2'],
    ['an allow where a refusal is due', 'peer', allow, 403, '200 instead of 403'],
    ['the refusal that is due', 'peer', deny(403), 403, undefined],
    ['another refusal than is due', 'peer', deny(403), 401, '403 instead of 401'],
    ['an empty answer', 'peer', Buffer.alloc(0), 200, '0 instead of 200'],
    ['the very message, of one that does nothing', 'floor', allow, 200, undefined],
    ['another message, of one that does nothing', 'floor', allowFor('acct-2'), 200, 'not the message of the product'],
  ] as const;
  for (const [name, family, answer, status, problem] of rows) {
    it(`${problem === undefined ? 'takes' : 'refuses'} ${name}`, () => {
      expect(problemOf({ family }, answer, status, allow, 'acct-1')).to.equal(problem);
    });
  }
});
