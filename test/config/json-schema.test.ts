// The JSON Schema accepts and refuses the configurations that the validation accepts and refuses, but for documented rules.
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import { changed, problemsOf } from '../../lab/config-file.ts';
import { toJsonSchema } from '../../src/config/schema.ts';
import { acceptedChanges } from './accepted-changes.ts';
import { refusedChanges } from './refused-changes.ts';

describe('JSON Schema', () => {
  // What docs/configuration.md says that the JSON Schema does not have.
  const beyondSchema = [
    /must not name the same (?:issuer|route|public route|header|host|parameter|token type|source) twice$/,
    /: must be at least \w+Seconds \(/,
    /: must be a (?:role|scope) that (?:roles|scopes) defines/,
    /: must (?:write the account parameter|say which parameter|have parameters, none)/,
    /: must not be what another role is called by too$/,
    /: must not match a path that one of routes matches/,
    /: must have a (?:metadata document|host that account\.hosts has)/,
    /^account\.headers.*: must not (?:start with the prefix|be a header that HTTP)/,
    /^account\.query.*: must not be a parameter by which/,
    /^identityHeaders: must not cover/,
    /\{acc\}|no token may be of two issuers|each has the key set of its own/,
    /must not be set together with jwksFile/,
    /must not (?:accept calls from other machines|overlap with listen)/,
    /^(?:listen|admin): must (?:end in a port|have an IPv4 address|have a socket path|not contain a NUL)/,
    /^protectedResource\.resource: must be a valid URL/,
    /^token\.origins: (?:is required with|must be left out without) a cookie or a subprotocol/,
    /^forwardClaims\.[a-z-]+: must not have more than \d hyphens/,
  ];
  // Which parameter a host may have depends on account.parameter.
  const hasParameterAsHost = /"hosts":\[":\w+\./;
  const validate = new Ajv2020({ strict: false, validateFormats: false }).compile(toJsonSchema());
  const isAccepted = (content: unknown): boolean => validate(JSON.parse(JSON.stringify(content)));
  it('accepts every valid configuration', () => {
    expect(acceptedChanges.filter(changes => !isAccepted(changed(changes)))).to.deep.equal([]);
  });
  for (const [, changes] of refusedChanges) {
    const content = changed(changes);
    if (!isAccepted(content) || hasParameterAsHost.test(JSON.stringify(content))) continue;
    it(`accepts ${JSON.stringify(changes).slice(0, 160)} only by a documented rule`, async () => {
      const problems = await problemsOf(content);
      expect(problems.filter(problem => !beyondSchema.some(rule => rule.test(problem)))).to.deep.equal([]);
    });
  }
});
