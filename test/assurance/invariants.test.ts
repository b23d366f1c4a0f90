// A violation of each invariant is found, and no test obtains a CheckResponse without the check.
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { checkRequest } from '../../lab/check-request.ts';
import { createInvariants, expectNoPartOf, tokenPartsOf } from '../../lab/invariants.ts';
import { token } from '../../lab/token.ts';
import { createIdentityHeaders } from '../../src/envoy/identity-headers.ts';
import type { CheckResponseMessage } from '../../src/envoy/protocol.ts';
import { toCheckResponse } from '../../src/envoy/response.ts';
import { principal } from '../support/facts.ts';
import { refusalOf } from '../support/refusal.ts';

const settings = { identityHeaders: createIdentityHeaders('x-auth-'), forward: false };
const context = { requestId: 'r-1', receivedHeaders: [], principal: undefined };
const allow = toCheckResponse(settings, { kind: 'allow', principal: principal() }, context);
const deny = toCheckResponse(settings, refusalOf('token_invalid', 'why'), context);
const ok = allow.ok_response ?? { headers: [], headers_to_remove: [] };
const denied = deny.denied_response ?? { status: { code: 0 }, headers: [], body: '' };
const [first] = ok.headers;

describe('the invariants of every answer', () => {
  it('hold for an allow and for a refusal, with any request id', () => {
    const invariants = createInvariants();
    for (const requestId of ['r-1', 'r-2']) {
      invariants.hold(allow);
      invariants.hold(toCheckResponse(settings, refusalOf('token_invalid', 'other'), { ...context, requestId }));
    }
  });

  const broken: readonly (readonly [name: string, says: RegExp, response: object])[] = [
    ['an empty message', /I1/, {}],
    ['no status', /I1/, { ...deny, status: null }],
    ['a code that is a word', /I1/, { ...deny, status: { code: 'UNAUTHENTICATED' } }],
    ['a code with a fraction', /I1/, { ...deny, status: { code: 1.5 } }],
    ['a code of no meaning', /I1/, { ...deny, status: { code: 17 } }],
    ['an allow with another code', /I2/, { ...allow, status: { code: 7 } }],
    ['a refusal with code 0', /I2/, { ...deny, status: { code: 0 } }],
    ['both members', /I2/, { ...allow, denied_response: denied }],
    ['neither member', /I2/, { status: { code: 7 } }],
    ['an error_response', /I2/, { ...deny, error_response: { status: { code: 503 } } }],
    ['an allow without headers', /I2/, { ...allow, ok_response: { ...ok, headers: [] } }],
    ['four headers', /I2/, { ...allow, ok_response: { ...ok, headers: ok.headers.slice(1) } }],
    ['a header twice', /I2/, { ...allow, ok_response: { ...ok, headers: [first, ...ok.headers] } }],
    ['another header', /I2/, { ...allow, ok_response: { ...ok, headers: [...ok.headers, renamed('x-auth-email')] } }],
    ['an empty value', /I2/, { ...allow, ok_response: { ...ok, headers: [valued(''), ...ok.headers.slice(1)] } }],
    [
      'a line end in a value',
      /I2/,
      { ...allow, ok_response: { ...ok, headers: [valued('a\r\nb'), ...ok.headers.slice(1)] } },
    ],
    [
      'a header that is appended',
      /I2/,
      { ...allow, ok_response: { ...ok, headers: [appended(), ...ok.headers.slice(1)] } },
    ],
    ['a header that is set and removed', /I2/, { ...allow, ok_response: { ...ok, headers_to_remove: ['x-auth-acc'] } }],
    ['an identity header on a refusal', /I2/, { ...deny, denied_response: { ...denied, headers: [first] } }],
    [
      'a body that says more',
      /I4/,
      { ...deny, denied_response: { ...denied, body: denied.body.replace('{', '{"hint":1,') } },
    ],
    ['another challenge', /I4/, { ...deny, denied_response: { ...denied, headers: denied.headers.slice(0, 2) } }],
  ];
  for (const [name, says, response] of broken) {
    it(`are violated by ${name}`, () => {
      const invariants = createInvariants();
      invariants.hold(deny);
      expect(() => invariants.hold(response as CheckResponseMessage)).to.throw(says);
    });
  }

  it('are violated by any part of the token in the answer, wherever it was in the request', async () => {
    const text = await token();
    const requests = [
      checkRequest({ headers: { authorization: `Bearer ${text}` } }),
      checkRequest({ headers: { cookie: `t=${text}` } }),
      checkRequest({ path: `/a?access_token=${text}` }),
    ];
    for (const request of requests) {
      for (const part of text.split('.')) {
        const leaking = toCheckResponse(settings, refusalOf('account_mismatch', ''), { ...context, requestId: part });
        expect(() => createInvariants().hold(leaking, request)).to.throw(/I3/);
      }
    }
  });

  it('find a part of a token in a log, and do not repeat it', async () => {
    const text = await token();
    const [, payload = ''] = text.split('.');
    const written = JSON.stringify({ detail: `x${payload}x` });
    expect(() => expectNoPartOf(tokenPartsOf(`Bearer ${text}`), written))
      .to.throw(/I3/)
      .with.property('message')
      .that.does.not.contain(payload);
  });

  it('are checked by every file of tests that reads a CheckResponse', () => {
    const folder = fileURLToPath(new URL('../', import.meta.url));
    const past = readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter(name => name.endsWith('.ts'))
      .filter(name => {
        const text = readFileSync(`${folder}${name}`, 'utf8');
        const reads =
          /authorizationService\.Check(?:\.responseDeserialize|,)|responseDeserialize[^;]*\} = authorizationService/.test(
            text,
          );
        return reads && !/from '[^']*support\/invariants\.ts'|from '\.\/invariants\.ts'/.test(text);
      });
    // The cost search checks whether its unit is allowed, and the loader's own test reads messages that the product never sends.
    expect(past).to.have.members([
      'assurance/cost/accounts.measured.test.ts',
      'assurance/cost/allowed-request.ts',
      'envoy/protocol.test.ts',
    ]);
  });
});

function renamed(key: string): object {
  return { ...first, header: { key, value: 'x' } };
}

function valued(value: string): object {
  return { ...first, header: { key: 'x-auth-uid', value } };
}

function appended(): object {
  return { ...first, append: { value: true } };
}
