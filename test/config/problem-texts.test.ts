// The text of each problem of a configuration names the rule and the remedy.
import { expect } from 'chai';
import { changed, problemsOf } from '../../lab/config-file.ts';

/** Changes of the smallest configuration, and under each all problems that it has. */
const listing = `
{"routes": null}
    routes: must be a list, but has no value
{"roles": []}
    roles: must be a mapping, not a list
{"token": "x"}
    token: must be a mapping, not text
{"apps": {}}
    apps: must be a list, not a mapping
{"apps": [7]}
    apps[0]: must be text: put it in quotes
{"listenInsecure": 1}
    listenInsecure: must be true or false
{"issuers.0.claims.sub": "uid"}
    issuers[0].claims.sub: is not a known key: the keys here are aud, uid, app, acc, role, scope, actor
{"issuers.0.claims.role": "/a~b"}
    issuers[0].claims.role: must be a valid JSON Pointer (RFC 6901) because it starts with /: write ~0 for ~ and ~1 for / within a name
{"log.level": 1}
    log.level: must be one of trace, debug, info, warn, error, fatal, silent
{"issuers.0.algorithms": ["HS256"]}
    issuers[0].algorithms[0]: must not be HS256, a shared secret, with which whoever verifies a token can make one: let the issuer sign with RS256 or ES256
{"issuers.0.claims.uid": ""}
    issuers[0].claims.uid: must be the name of a claim, or a JSON Pointer that starts with /
{"issuers.0.claims.acc": 7}
    issuers[0].claims.acc: must be the name of a claim, or a JSON Pointer that starts with /, or { keysOf: NAME } or { wordsOf: NAME }
{"issuers.0.claims.role": 7}
    issuers[0].claims.role: must be the name of a claim, or a JSON Pointer that starts with /, or { keysOf: NAME }, { keysOf: NAME, having: '{acc}' } or { wordsOf: NAME }
{"issuers.0.claims.acc": "/{acc}"}
    issuers[0].claims.acc: must not contain {acc}: only the JSON Pointers of role and scope may
{"issuers.0.claims.scope": "{acc}"}
    issuers[0].claims.scope: must have {acc} only as a whole segment of a JSON Pointer, such as /organization/{acc}/roles
{"forwardClaims": {"uid": "a", "Plan": "b"}}
    forwardClaims.uid: must be 1 to 32 lower-case letters, digits and hyphens that start with a letter, and none of uid, app, acc, role, iss, actor
    forwardClaims.Plan: must be 1 to 32 lower-case letters, digits and hyphens that start with a letter, and none of uid, app, acc, role, iss, actor
{"forwardClaims": {}}
    forwardClaims: must name at least one header
{"revocation": {"url": "https://a.test/{acc}/list"}}
    revocation.url: must not have {acc}: one list is for all accounts
{"issuers.0.accounts": ["a*b"]}
    issuers[0].accounts[0]: must be an account of A-Z a-z 0-9 . _ ~ -, or the start of one with "*" at its end; "!" before it excepts those accounts
{"issuers.0.jwksFile": "a.json"}
    issuers[0]: must set exactly one of jwksUrl, discoveryUrl, jwksFile (it sets jwksUrl and jwksFile)
    issuers[0].jwksFile: the file does not exist
{"apps": ["web", "*"]}
    apps: must be either "*" alone or app ids without "*"
{"listen": "127.0.0.1:9192"}
    admin: must not overlap with listen: use another port
{"listen": "0.0.0.0:9191"}
    listen: must not accept calls from other machines without TLS: set tls, listen on loopback or a Unix socket, or set listenInsecure: true
{"keys.maxAgeSeconds": 299}
    keys.maxAgeSeconds: must be at least refreshSeconds (300)
{"account.headers": ["x-auth-acc"]}
    account.headers[0]: must not start with the prefix of identityHeaders: such headers are removed from requests
{"account.hosts": [":account_id.a.test"], "account.parameter": "tenant"}
    account.hosts[0]: must be a host name without port and without a dot at the end, whose first label may be :tenant
{"account.hosts": ["c.test"], "protectedResource": {"resource": "https://b.test"}}
    protectedResource.resource: must have a host that account.hosts has without the account: clients fetch its metadata from there
{"account.hosts": [":account_id.b.test"], "protectedResource": {"resource": "https://b.test"}}
    protectedResource.resource: must have a host that account.hosts has without the account: clients fetch its metadata from there
{"account.hosts": [7], "protectedResource": {"resource": "https://b.test"}}
    account.hosts[0]: must be text: put it in quotes
    protectedResource.resource: must have a host that account.hosts has without the account: clients fetch its metadata from there
{"routes.0.scopes": ["billing"]}
    routes[0].scopes[0]: must be a scope that scopes defines: add it to scopes, or remove it here
{"protectedResource": {"resource": "https://b.test", "scopes": ["billing"]}}
    protectedResource.scopes[0]: must be a scope that scopes defines: add it to scopes, or remove it here
{"routes.0.roles": ["toString"]}
    routes[0].roles[0]: must be a role that roles defines: add it to roles, or remove it here
{"routes.0.path": "/a/:tenant"}
    routes[0].path: must say which parameter is the account: name it :account_id, or set accountInPath: false if none is the account
{"routes": [{"path": "/a/:account_id/:tenant", "accountInPath": false}]}
    routes[0].path: must have parameters, none of them :account_id, where accountInPath is false: remove accountInPath
{"routes": [{"path": "/a", "accountInPath": false}]}
    routes[0].path: must have parameters, none of them :account_id, where accountInPath is false: remove accountInPath
{"routes": [{"path": "/a/:a/*", "accountInPath": false},{"path": "/a/:b/*", "accountInPath": false}]}
    routes[1].path: must not name the same route twice
{"routes.0.path": "/a/:account_id", "public": [{"path": "/A/*"}]}
    public[0].path: must not match a path that one of routes matches, case ignored
{"routes": [{"path": "/a"},{"path": "/b"}], "public": [{"path": "/b"}]}
    public[0].path: must not match a path that one of routes matches, case ignored
{"public": [{"path": "/a/:account_id"}]}
    public[0].path: must not have parameters: a public route is a literal path
{"public": [{"path": "/.well-known/oauth-protected-resource/b"}], "protectedResource": {"resource": "https://b.test/b"}}
    protectedResource.resource: must have a metadata document whose path no route and no public route matches
{"issuers.0.tokenTypes": ["a b"]}
    issuers[0].tokenTypes[0]: must be a media type such as JWT or at+jwt, or "" for an absent typ
{"issuers.0.audiences": [" a"]}
    issuers[0].audiences[0]: must be 1 to 1024 characters without control characters and without white space at the start or end
{"issuers.0.claims.acc": "/{acc}~"}
    issuers[0].claims.acc: must be a valid JSON Pointer (RFC 6901) because it starts with /: write ~0 for ~ and ~1 for / within a name
{"public": [{"path": "/a", "methods": []}]}
    public[0].methods: must name at least one method
{"public": [{"path": "/a", "methods": ["get"]}]}
    public[0].methods[0]: must be a method in upper case such as GET
{"routes.0.roles": ["a b"]}
    routes[0].roles[0]: must be a role of 1 to 128 visible ASCII characters without space , ; and "
    routes[0].roles[0]: must be a role that roles defines: add it to roles, or remove it here
{"apps": ["a b"]}
    apps[0]: must be an app id of 1 to 128 visible ASCII characters without space , ; and "
{"roles.a b": ["GET"]}
    roles["a b"]: must be a role of 1 to 128 visible ASCII characters without space , ; and "
{"roles.owner": ["get"]}
    roles.owner[0]: must be a method in upper case such as GET, or "*"; for some paths alone, then a space and their template: "POST /a/*"
{"roles.owner": "GET"}
    roles.owner: must be a list of grants, or { methods, names }
{"roles.owner": {"methods": ["GET"]}}
    roles.owner.names: is required
{"roles.owner": {"methods": ["GET"], "names": "a"}}
    roles.owner.names: must be a list, not text
{"roles.owner": {"methods": ["GET"], "name": ["a"]}}
    roles.owner: must be a list of grants, or { methods, names }
{"issuers.0.claims.role": {"wordsOf": "role", "by": ";"}}
    issuers[0].claims.role.by: must be ","
{"routes.0.accountInPath": true}
    routes[0].accountInPath: must be false
{"token.from": [{"header": "Authorization"}]}
    token.from[0].header: must not be a header that HTTP, Envoy or account-authz uses: use a name of your own such as x-id-token, or authorization alone without header
{"token": {"from": [{"cookie": "t"}], "origins": ["https://app.test:443"]}}
    token.origins[0]: must be an origin as browsers send it, such as https://app.example.com (http only for loopback addresses): lower case, without default port, path, slash at the end and wildcard
{"roles.owner": {"methods": ["*"], "names": [""]}}
    roles.owner.names[0]: must be 1 to 256 characters without control characters
{"roles": {"owner": ["*"], "admin": {"methods": ["*"], "names": ["a", "owner"]}}}
    roles.admin.names[1]: must not be what another role is called by too
{"roles.owner": ["GET", "POST /a*"]}
    roles.owner[1]: has a template that must have "*" only as its whole last segment ("/*")
{"roles.owner": {"methods": ["POST /:accountId"], "names": ["o"]}}
    roles.owner.methods[0]: has a template that must write the account parameter as :account_id
{"scopes.a": {"methods": ["GET"], "names": ["b"]}}
    scopes.a: must be a list, not a mapping
{"account.parameter": "1x"}
    account.parameter: must be a name of letters, digits and _ that starts with a letter or _
{"scopes.*": ["GET"]}
    scopes["*"]: must be the name of one scope ("*" does not stand for all scopes)
{"account.query": ["_"]}
    account.query[0]: must be 1 to 128 of the characters A-Z a-z 0-9 . _ ~ -, with a letter or digit among them
{"account.query": ["_method"]}
    account.query[0]: must not be a parameter by which servers let a client change the method: requests with it are refused
`;

describe('problems of a configuration', () => {
  for (const text of listing.trim().split(/\n(?=\{)/)) {
    const [changes = '', ...problems] = text.split(/\n */);
    it(`of ${changes} are: ${problems.join(', ')}`, async () => {
      expect(await problemsOf(changed(JSON.parse(changes)))).to.deep.equal(problems);
    });
  }

  const nouns = {
    'issuers.0.audiences': 'audience',
    'issuers.0.algorithms': 'algorithm',
    'issuers.0.tokenTypes': 'token type',
    'issuers.0.accounts': 'account',
    'routes.0.roles': 'role',
    'routes.0.scopes': 'scope',
    public: 'public route',
    'account.headers': 'header',
    'account.query': 'parameter',
    'account.hosts': 'host',
    'roles.owner': 'grant',
    apps: 'app',
  };
  for (const [path, noun] of Object.entries(nouns)) {
    it(`needs an item in ${path}`, async () => {
      const problem = `${path.replace('.0', '[0]')}: must name at least one ${noun}`;
      expect(await problemsOf(changed({ [path]: [] }))).to.include(problem);
    });
  }

  for (const [path, value, problem] of [
    ['issuers', undefined, 'issuers: is required'],
    [
      'issuers.0.jwksUrl',
      undefined,
      'issuers[0]: must set exactly one of jwksUrl, discoveryUrl, jwksFile (it sets none)',
    ],
    [
      'roles.owner.names',
      Array.from({ length: 101 }, (_, i) => `name ${i}`),
      'roles.owner.names: must name at most 100 names',
    ],
  ] as const) {
    it(`reports "${problem}"`, async () => {
      expect(
        await problemsOf(changed({ 'roles.owner': { methods: ['*'], names: ['a'] }, [path]: value })),
      ).to.deep.equal([problem]);
    });
  }
});
