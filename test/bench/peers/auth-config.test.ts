import { expect } from 'chai';
import { authConfig, authConfigDefinition, authConfigsPath } from '../../../bench/peers/authorino/auth-config.ts';

const settings = {
  host: 'api.example.com',
  issuerUrl: 'http://127.0.0.1:8080',
  issuer: 'https://auth.example.com',
  audience: 'https://"api".example.com',
};
const { spec } = authConfig(settings);
const cached = authConfig({ ...settings, cacheSeconds: 60 }).spec;
type Spec = typeof spec;

function predicateOf({ authorization }: Spec): string {
  const predicates = authorization.access.patternMatching.patterns.filter(pattern => 'predicate' in pattern);
  return predicates.map(({ predicate }) => predicate).join();
}

describe('the AuthConfig of the bench', () => {
  it('is of the kind that is defined, in the folder where it is made', () => {
    const { kind, apiVersion, metadata } = authConfig(settings);
    const { group, names, versions } = authConfigDefinition.spec;
    expect({ kind, apiVersion }).to.deep.equal({ kind: names.kind, apiVersion: `${group}/${versions[0]?.name}` });
    expect(authConfigsPath).to.equal(`/apis/${apiVersion}/namespaces/${metadata.namespace}/${names.plural}`);
  });

  it('is for the host of the requests and asks the issuer for its keys', () => {
    expect(spec.hosts).to.deep.equal(['api.example.com']);
    expect(spec.authentication.token).to.deep.equal({ jwt: { issuerUrl: 'http://127.0.0.1:8080' } });
  });

  it('asks for issuer and audience, as literals', () => {
    expect(predicateOf(spec)).to.include('auth.identity.iss == "https://auth.example.com"');
    expect(predicateOf(spec)).to.include('"https://\\"api\\".example.com" in ');
  });

  it('sets the headers of the product', () => {
    expect(Object.keys(spec.response.success.headers)).to.have.members([
      'x-auth-uid',
      'x-auth-app',
      'x-auth-acc',
      'x-auth-role',
      'x-auth-iss',
    ]);
  });

  it('keeps a token that was verified only where it is told to, and then judges its end anew', () => {
    const expiry = 'request.time.seconds < auth.identity.exp + 30.0';
    expect(predicateOf(spec)).not.to.include(expiry);
    expect(predicateOf(cached)).to.include(expiry);
    expect(cached.authentication.token).to.have.deep.property('cache', {
      key: { selector: 'request.headers.authorization' },
      ttl: 60,
    });
  });
});
