// Which header names the configuration allows for accounts and as the prefix of identity headers.
import { expect } from 'chai';
import { accountHeaderProblem, identityPrefixProblem } from '../../src/headers/headers.ts';

describe('header names in the configuration', () => {
  for (const name of ['x-account-id', 'account', 'x-tenant', 'x-auth-account', 'x1', 'a', 'x-customer-number-2']) {
    it(`allow ${name} as an account header`, () => {
      expect(accountHeaderProblem(name)).to.equal(undefined);
    });
  }

  const reserved = [
    ...'authorization proxy-authorization host content-length content-type content-anything te trailer'.split(' '),
    ...'connection keep-alive transfer-encoding upgrade expect cookie set-cookie origin referer'.split(' '),
    ...'user-agent forwarded via range accept accept-language if-match sec-fetch-site'.split(' '),
    ...'access-control-request-method x-request-id traceparent tracestate b3 x-b3-traceid'.split(' '),
    ...'x-forwarded-for x-forwarded-client-cert x-envoy-original-path x-envoy-anything x-real-ip'.split(' '),
    ...'x-original-url x-http-method-override grpc-timeout'.split(' '),
  ];
  for (const name of reserved) {
    it(`refuse ${name} as an account header`, () => {
      expect(accountHeaderProblem(name)).to.equal(
        'must not be a header that HTTP, Envoy or account-authz uses: use a name of your own such as x-account-id',
      );
    });
  }

  for (const name of [...':path :authority x_account_id x-account_id é a:b a,b -a a-'.split(' '), '', 'x account']) {
    it(`refuse ${JSON.stringify(name)} as an account header`, () => {
      expect(accountHeaderProblem(name)).to.be.a('string');
    });
  }

  it('explain why an account header must not have an underscore, and x-amzn-oidc-data can have no token', () => {
    expect(accountHeaderProblem('x_account_id')).to.equal(
      'must have hyphens in place of underscores: a request with an underscore in this name is refused',
    );
    expect(accountHeaderProblem('x-amzn-oidc-data')).to.match(/padding.*PEM files by kid.*x-amzn-oidc-accesstoken/);
  });

  for (const prefix of ['x-auth-', 'x-id-', 'abc-', 'identity-', 'x-my-company-auth-', 'a-b-c-d-e-', 'x-authz-']) {
    it(`allow ${prefix} as the identity prefix`, () => {
      expect(identityPrefixProblem(prefix)).to.equal(undefined);
    });
  }

  const refused = {
    'outside the grammar': ['', 'X-Auth-', 'x-Auth-', 'x_auth-', 'x auth-', 'x-auth:-', ':path-', '-auth-', 'x-äuth-'],
    'without a hyphen at the end': ['x-auth', 'authorization', 'host', ':path', 'x-auth_'],
    'shorter than four characters': ['x-', 'ab-', 'a--'],
    'longer than 64 characters': [`${'a'.repeat(64)}-`],
    'with more than five hyphens': ['a-b-c-d-e-f-', 'x------'],
    'inside a reserved family': 'content- content-x- x-envoy- x-envoy-auth- x-forwarded- sec-fetch- grpc-'.split(' '),
    'that covers a reserved family': ['access-', 'cross-'],
    'that covers a known header': 'x-request- user- last- max- x-real- strict-transport- keep- www-'.split(' '),
  };
  for (const [why, prefixes] of Object.entries(refused)) {
    for (const prefix of prefixes) {
      it(`O-019 refuse an identity prefix ${why}: ${JSON.stringify(prefix)}`, () => {
        expect(identityPrefixProblem(prefix)).to.be.a('string');
      });
    }
  }
});
