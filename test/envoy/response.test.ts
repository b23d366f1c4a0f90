// CheckResponse messages: allow, refusal, and properties of any decision, as Envoy decodes them.
import { expect } from 'chai';
import fc from 'fast-check';
import { invariants } from '../../lab/invariants.ts';
import type { Decision } from '../../src/authz/authorize.ts';
import { type AllowedPrincipal, isIdentityField, type Principal } from '../../src/authz/principal.ts';
import { type Reason, refusalAnswers } from '../../src/authz/refusal.ts';
import { authorizationService, type CheckResponseMessage } from '../../src/envoy/protocol.ts';
import { type ResponseContext, toCheckResponse } from '../../src/envoy/response.ts';
import { createIdentityHeaders } from '../../src/headers/headers.ts';
import { anyCharacter } from '../support/any-character.ts';
import { principal } from '../support/facts.ts';
import { refusalOf } from '../support/refusal.ts';

const identityHeaders = createIdentityHeaders('x-auth-');
const context: ResponseContext = { requestId: 'r-1', receivedHeaders: [], principal: undefined };
const reasons = Object.keys(refusalAnswers) as Reason[];

/** The response as Envoy decodes it from the wire. */
function onTheWire(decision: Decision, changes: Partial<ResponseContext> = {}, forward = false): CheckResponseMessage {
  const removedHeaders = forward ? [] : ['authorization'];
  const response = toCheckResponse({ identityHeaders, removedHeaders }, decision, { ...context, ...changes });
  const { responseSerialize, responseDeserialize } = authorizationService.Check;
  const read = responseDeserialize(responseSerialize(response));
  invariants.hold(read);
  return read;
}

function headersOf(response: CheckResponseMessage): Record<string, string> {
  const list = response.denied_response?.headers ?? response.ok_response?.headers ?? [];
  return Object.fromEntries(list.map(({ header }) => [header.key, header.value]));
}

function metadataOf(response: CheckResponseMessage): Record<string, string | undefined> {
  return Object.fromEntries(
    Object.entries(response.dynamic_metadata?.fields ?? {}).map(([name, value]) => [name, value.stringValue]),
  );
}

/** The fields that Envoy is told. */
function shown({ uid, app, acc, role, iss }: AllowedPrincipal) {
  return { uid, app, acc, role, iss };
}

describe('CheckResponse', () => {
  describe('for an allow', () => {
    const allow: Extract<Decision, { kind: 'allow' }> = { kind: 'allow', principal: principal(), forwarded: [] };

    it('sets the headers of forwardClaims that the token has, removes the others, and names none in the metadata', () => {
      const names = createIdentityHeaders('x-auth-', { email: 'email', plan: 'plan' });
      const settings = { identityHeaders: names, removedHeaders: [] };
      const response = toCheckResponse(settings, { ...allow, forwarded: ['a@b.test', undefined] }, context);
      expect(headersOf(response)).to.include({ 'x-auth-email': 'a@b.test' }).and.not.have.property('x-auth-plan');
      const { headers_to_remove: removed } = response.ok_response ?? {};
      expect(removed).to.include.members(['x-auth-plan', 'x_auth_plan', 'x_auth-email']);
      expect(JSON.stringify(response.dynamic_metadata)).to.not.match(/email|b\.test/);
    });

    it('has code 0 and the identity headers', () => {
      const response = onTheWire(allow);
      expect(response.status.code).to.equal(0);
      expect(headersOf(response)).to.deep.equal({
        'x-auth-uid': 'u-1',
        'x-auth-app': 'web',
        'x-auth-acc': 'acct1',
        'x-auth-role': 'owner',
        'x-auth-iss': 'https://idp.test',
      });
      expect(response).to.not.have.property('denied_response');
    });

    it('O-009 overwrites headers by append and by append_action', () => {
      for (const option of onTheWire(allow).ok_response?.headers ?? []) {
        expect(option.append).to.deep.equal({ value: false });
        expect(option.append_action).to.equal(2);
      }
    });

    it('O-021 removes authorization, unless it is forwarded', () => {
      expect(onTheWire(allow).ok_response?.headers_to_remove).to.include('authorization');
      expect(onTheWire(allow, {}, true).ok_response?.headers_to_remove).to.deep.equal([
        'x-auth-actor',
        ...identityHeaders.lookAlikes,
      ]);
    });

    it('always removes every underscore spelling of the identity headers', () => {
      const removed = onTheWire(allow).ok_response?.headers_to_remove ?? [];
      for (const field of ['uid', 'app', 'acc', 'role', 'iss', 'actor']) {
        expect(removed).to.include.members([`x_auth_${field}`, `x-auth_${field}`, `x_auth-${field}`]);
      }
      expect(removed).to.have.lengthOf(2 + 18);
    });

    it('O-007 removes other request headers under the prefix, in any spelling', () => {
      const receivedHeaders = 'x-auth-email x_auth-email x-auth-uid x_auth_uid x-authority accept x-auth-'.split(' ');
      const removed = onTheWire(allow, { receivedHeaders }).ok_response?.headers_to_remove ?? [];
      expect(removed.slice(20)).to.deep.equal(['x-auth-email', 'x_auth-email', 'x-auth-']);
    });

    it('O-005 does not remove invalid header names', () => {
      const receivedHeaders = ['x-auth-uid ', 'x-auth-a\r\nb', 'x-auth-\0'];
      expect(onTheWire(allow, { receivedHeaders }).ok_response?.headers_to_remove).to.have.lengthOf(20);
    });

    it('sets the header of the actor only where the token has one, and removes it otherwise', () => {
      const { ok_response } = onTheWire({ kind: 'allow', principal: principal({ actor: 'support-1' }), forwarded: [] });
      expect(ok_response?.headers.map(({ header }) => header.key)).to.include('x-auth-actor');
      expect(ok_response?.headers_to_remove).to.not.include('x-auth-actor');
      expect(onTheWire(allow).ok_response?.headers_to_remove).to.include('x-auth-actor');
    });

    it('removes the other headers of the settings', () => {
      const settings = { identityHeaders, removedHeaders: ['authorization', 'x-forwarded-host', 'x_host'] };
      const { ok_response } = toCheckResponse(settings, allow, context);
      expect(ok_response?.headers_to_remove).to.include.members(['x-forwarded-host', 'x_host']);
    });

    it('never sets and removes the same header', () => {
      const name = fc.stringMatching(/^[xX][-_][aA]uth[-_][a-z_-]{0,6}$/).map(text => text.toLowerCase());
      fc.assert(
        fc.property(
          fc.array(fc.oneof(name, fc.constantFrom('x-auth-uid', 'x-auth-iss', 'x-auth-acc'))),
          receivedHeaders => {
            const { ok_response } = onTheWire(allow, { receivedHeaders });
            const set = new Set(ok_response?.headers.map(({ header }) => header.key));
            expect(set.size).to.equal(5);
            expect(ok_response?.headers_to_remove.filter(each => set.has(each))).to.deep.equal([]);
          },
        ),
      );
    });

    it('F-010 carries every valid identity value unchanged', () => {
      fc.assert(
        fc.property(fc.string({ minLength: 1, maxLength: 128, size: 'max' }).filter(isIdentityField), uid => {
          expect(
            headersOf(onTheWire({ kind: 'allow', principal: principal({ uid }), forwarded: [] }))['x-auth-uid'],
          ).to.equal(uid);
        }),
      );
    });

    it('has the decision and the identity in the dynamic metadata', () => {
      expect(metadataOf(onTheWire(allow))).to.deep.equal({
        decision: 'allow',
        reason: 'allowed',
        'account-authz': 'allow',
        ...shown(principal()),
      });
      const acting = principal({ actor: 'support-1', scope: 'billing' });
      expect(metadataOf(onTheWire({ kind: 'allow', principal: acting, forwarded: [] }))).to.deep.equal({
        decision: 'allow',
        reason: 'allowed',
        'account-authz': 'allow',
        ...shown(acting),
        actor: 'support-1',
      });
    });
  });

  describe('for a refusal', () => {
    for (const reason of reasons) {
      const { httpStatus, rpcCode, decision } = refusalAnswers[reason];

      it(`F-018 L-011 ${reason} has code ${rpcCode}, status ${httpStatus} and a problem body without the detail`, () => {
        const response = onTheWire(refusalOf(reason, 'a detail'));
        expect(response.status.code).to.equal(rpcCode);
        expect(response.denied_response?.status.code).to.equal(httpStatus);
        expect(response).to.not.have.property('ok_response');
        const headers = { 'content-type': 'application/problem+json', 'cache-control': 'no-store' };
        expect(headersOf(response)).to.include(headers);
        expect(headersOf(response)['retry-after']).to.equal(decision === 'unavailable' ? '5' : undefined);
        for (const option of response.denied_response?.headers ?? [])
          expect(option).to.deep.include({ append: { value: false }, append_action: 2 });
        const body: unknown = JSON.parse(response.denied_response?.body ?? '');
        expect(body).to.deep.equal({
          type: `urn:account-authz:${reason}`,
          title: refusalAnswers[reason].title,
          status: httpStatus,
          reason,
          request_id: 'r-1',
        });
        expect(JSON.stringify(response)).to.not.contain('a detail');
        expect(Buffer.byteLength(response.denied_response?.body ?? '')).to.be.below(1024);
      });

      it(`${reason} has the identity in the dynamic metadata only when it is verified`, () => {
        const shownFor = (who?: Principal) => metadataOf(onTheWire(refusalOf(reason, ''), { principal: who }));
        const { role, ...roleless } = shown(principal());
        expect(shownFor()).to.deep.equal({ decision, reason });
        expect(shownFor({ ...principal(), role: undefined })).to.deep.equal({ decision, reason, ...roleless });
        expect(shownFor(principal())).to.deep.equal({ decision, reason, ...roleless, role });
      });
    }

    const realm = 'Bearer realm="account-authz"';
    const challenges: Readonly<Record<Reason, string | undefined>> = {
      request_invalid: undefined,
      token_missing: realm,
      token_invalid: `${realm}, error="invalid_token"`,
      token_expired: `${realm}, error="invalid_token"`,
      token_revoked: `${realm}, error="invalid_token"`,
      account_required: undefined,
      role_forbidden: undefined,
      scope_forbidden: undefined,
      origin_forbidden: undefined,
      app_forbidden: undefined,
      account_mismatch: undefined,
      route_unknown: undefined,
      keys_unavailable: undefined,
      revocation_unavailable: undefined,
      internal: undefined,
    };
    for (const reason of reasons) {
      it(`F-017 ${reason} has ${challenges[reason] === undefined ? 'no challenge' : `the challenge ${challenges[reason]}`}`, () => {
        expect(headersOf(onTheWire(refusalOf(reason, '')))['www-authenticate']).to.equal(challenges[reason]);
      });
    }

    it('names the scopes of which one would be enough, then the metadata of the protected resource', () => {
      const resourceMetadata = 'https://api.test/.well-known/oauth-protected-resource/a';
      const settings = { identityHeaders, removedHeaders: ['authorization'], resourceMetadata };
      const challengeOf = (decision: Decision) =>
        toCheckResponse(settings, decision, context).denied_response?.headers.find(
          ({ header }) => header.key === 'www-authenticate',
        )?.header.value;
      const metadata = `resource_metadata="${resourceMetadata}"`;
      const scopes = ['billing', 'orders:read'];
      const hinted = (reason: Reason, names: readonly string[], isOfResource = true) =>
        challengeOf({ ...refusalOf(reason, ''), hint: { scopes: names, isOfResource } });
      expect(hinted('scope_forbidden', scopes)).to.equal(
        `${realm}, error="insufficient_scope", scope="billing orders:read", ${metadata}`,
      );
      expect(hinted('scope_forbidden', [])).to.equal(undefined);
      expect(hinted('token_missing', [])).to.equal(`${realm}, ${metadata}`);
      expect(hinted('token_expired', ['billing'], false)).to.equal(`${realm}, error="invalid_token", scope="billing"`);
      expect(hinted('account_mismatch', scopes)).to.equal(undefined);
    });

    it('O-011 sets no identity header', () => {
      const response = onTheWire(refusalOf('account_mismatch', ''), { principal: principal() });
      expect(Object.keys(headersOf(response)).filter(name => name.startsWith('x-'))).to.deep.equal([]);
    });
  });
});

describe('CheckResponse for any decision', () => {
  const text = fc.string({ minLength: 1, maxLength: 128, size: 'max' }).filter(isIdentityField);
  const who = fc.record({ uid: text, app: text, role: text, iss: text }).map(each => principal(each));
  const decision: fc.Arbitrary<Decision> = fc.oneof(
    who.map((each): Decision => ({ kind: 'allow', principal: each, forwarded: [] })),
    fc.constantFrom(...reasons).map((each): Decision => refusalOf(each, 'a detail')),
  );
  const shownNames = fc.array(
    fc.oneof(fc.string({ unit: anyCharacter }), fc.stringMatching(/^x[-_]auth[-_][a-z]{0,6}$/)),
  );
  const requestId = fc.stringMatching(/^[A-Za-z0-9._-]{1,128}$/);

  it('F-002 F-003 F-005 F-006 F-011 F-020 has an integer code, and ok_response only with code 0', () => {
    fc.assert(
      fc.property(decision, shownNames, requestId, fc.boolean(), (each, receivedHeaders, id, forward) => {
        const read = onTheWire(each, { receivedHeaders, requestId: id }, forward);
        const { ok_response, denied_response, status } = read;
        expect(status.code).to.be.within(0, 16);
        expect(Number.isInteger(status.code)).to.equal(true);
        expect(ok_response !== undefined).to.equal(status.code === 0);
        expect(denied_response === undefined).to.equal(status.code === 0);
        expect(ok_response !== undefined).to.equal(each.kind === 'allow');
        const headers = (ok_response ?? denied_response)?.headers ?? [];
        for (const { header } of headers) {
          expect(header.value).to.match(/^[\x20-\x7e]+$/);
          expect((header as { readonly raw_value?: Buffer }).raw_value ?? []).to.have.lengthOf(0);
        }
      }),
    );
  });

  it('F-007 keeps every member from the built message to what Envoy decodes', () => {
    fc.assert(
      fc.property(decision, shownNames, requestId, (each, receivedHeaders, id) => {
        const built = toCheckResponse({ identityHeaders, removedHeaders: ['authorization'] }, each, {
          ...context,
          receivedHeaders,
          requestId: id,
        });
        expect(onTheWire(each, { receivedHeaders, requestId: id })).to.containSubset(built);
      }),
    );
  });
});
