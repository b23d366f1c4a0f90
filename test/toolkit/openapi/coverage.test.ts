// What check-config --openapi says about each operation, and which files it names.
import { expect } from 'chai';
import { configSchema } from '../../../src/config/schema.ts';
import { coverOperations } from '../../../src/toolkit/openapi/coverage.ts';
import { parseOpenApi } from '../../../src/toolkit/openapi/document.ts';
import { readOperations } from '../../../src/toolkit/openapi/operations.ts';

const config = configSchema.parse({
  issuers: [{ issuer: 'https://auth.example.com', audiences: ['api'], jwksUrl: 'https://auth.example.com/jwks' }],
  routes: [
    { path: '/v1/orders/*' },
    { path: '/v1/orders/:account_id/*' },
    { path: '/v1/admin', roles: ['owner'] },
    { path: '/v1/files/*', characters: 'rfc3986' },
    { path: '/v1/strict/*' },
  ],
  public: [{ path: '/v1/healthz' }, { path: '/v1/docs/*' }],
  account: { headers: ['x-account-id'], query: ['account_id'] },
  roles: { owner: ['*'], member: ['GET', 'POST /v1/orders/:account_id/notes/*'] },
});

const secured = { security: [{ bearer: [] }] };

function cover(document: object | string, basePath?: string) {
  const parsed = parseOpenApi(Buffer.from(typeof document === 'string' ? document : JSON.stringify(document)));
  if (parsed.kind === 'problem') throw new Error(parsed.problem);
  const { operations, problems } = coverOperations(readOperations(parsed, basePath), config);
  const lines = (wanted: string) => problems.filter(({ severity }) => severity === wanted).map(each => each.message);
  return { operations, error: lines('error'), warning: lines('warning'), information: lines('information') };
}

/** The one operation of a document that protects everything but says otherwise. */
function coverOne(path: string, operation: object = {}, method = 'get') {
  const paths = { [path]: { [method]: operation } };
  const { operations, ...lines } = cover({ openapi: '3.1.0', servers: [{ url: '/v1' }], ...secured, paths });
  return { ...operations[0], ...lines };
}

const parameter = (name: string, where: string) => ({ parameters: [{ name, in: where }] });

describe('check-config --openapi', () => {
  it('names the routes, the places of the account and the roles of an operation', () => {
    const { error, warning, ...row } = coverOne(
      '/orders/{account_id}/notes/{id}',
      parameter('X-Account-ID', 'header'),
      'post',
    );
    expect(row).to.deep.include({
      method: 'POST',
      path: '/v1/orders/{account_id}/notes/{id}',
      access: 'protected',
      outcome: 'checked',
      routes: ['/v1/orders/*', '/v1/orders/:account_id/*'],
      account: ['path', 'header X-Account-ID'],
      roles: ['owner', 'member'],
    });
    expect([...error, ...warning]).to.deep.equal([]);
  });

  const orders = '/orders/{account_id}';
  const found: readonly (readonly ['error' | 'warning' | 'information', RegExp, ...Parameters<typeof coverOne>])[] = [
    ['error', /protects it, and the public route \/v1\/docs\/\* serves it/, '/docs/secret'],
    ['error', /query parameter AccountId/, '/docs/x', { security: [], ...parameter('AccountId', 'query') }],
    ['error', /path parameter account-id is the account/, '/files/{account-id}'],
    ['error', /query parameter accountId/, orders, parameter('accountId', 'query')],
    ['error', /cookie parameter account_id/, orders, parameter('account_id', 'cookie')],
    ['error', /query or a fragment/, '/admin?x=1'],
    ['error', /leads out of the document/, '/admin', { parameters: [{ $ref: 'https://example.com/p.yaml' }] }],
    ['error', /leads nowhere/, '/admin', { $ref: '#/nowhere' }],
    ['warning', /no route matches: 404/, '/elsewhere/{id}'],
    ['warning', /public route \/v1\/healthz has GET, HEAD alone/, '/healthz', {}, 'post'],
    ['warning', /no role may call it/, '/admin', {}, 'trace'],
    ['warning', /calls it public, and \/v1\/admin checks it/, '/admin', { security: [] }],
    ['warning', /refused .*: a route that writes it as the API does/, '/Admin'],
    ['warning', /characters: rfc3986 of \/v1\/strict\/\* permits it/, '/strict/$meta'],
    ['warning', /rfc3986 of a route whose :other or/, '/orders/a b'],
    ['warning', /no setting permits it/, '/files/a;b'],
    ['warning', /^\{name\}\.json is a parameter beside text/, '/files/{name}.json'],
    ['warning', /^\{id\}:cancel is a parameter beside text/, '/strict/{id}:cancel'],
    ['warning', /_method changes the method/, '/admin', parameter('_method', 'query')],
    ['warning', /Override changes the method/, '/admin', parameter('X-HTTP-Method-Override', 'header')],
    ['information', /^search stands where \/v1\/orders\/:account_id\/\* has the account/, '/orders/search'],
    ['information', /^\/v1\/orders\/\* matches no operation/, '/admin'],
    ['information', /^\/v1\/docs\/\* serves no operation/, '/admin'],
    ['information', /^"POST \/v1\/orders\/:account_id\/notes\/\*" is for no operation/, '/admin'],
    ['information', /^1 operation: 1 checked without an account$/, '/admin'],
  ];
  for (const [severity, line, ...operation] of found) {
    it(`says as ${severity} of ${operation[0]}: ${line.source}`, () => {
      const lines = coverOne(...operation);
      expect(
        lines[severity].filter(each => line.test(each)),
        JSON.stringify(lines),
      ).to.have.length(1);
    });
  }

  it('reads security as the document means it: a requirement of nothing is public, a choice is neither', () => {
    const item = { get: { security: [{}] }, put: { security: [{}, { b: [] }] }, post: {}, delete: { security: [] } };
    const accessOf = (more: object, paths: object = { '/a': item }) =>
      cover({ openapi: '3.0.4', paths, ...more }).operations.map(({ access }) => access);
    expect(accessOf({})).to.deep.equal(['public', 'optional', 'public', 'public']);
    expect(accessOf(secured)).to.deep.equal(['public', 'optional', 'protected', 'public']);
    expect(accessOf({}, { '/a': { get: {} } })).to.deep.equal(['unsaid']);
  });

  it('follows references inside the document, and names circular ones and operations that are there twice', () => {
    const { operations, error } = cover(`
openapi: 3.2.0
paths:
  /v1/orders/{a}: { $ref: '#/components/pathItems/order' }
  /v1/orders/{b}: { get: {} }
  /v1/circle: { $ref: '#/components/pathItems/circle' }
webhooks: { hook: { post: {} } }
components:
  parameters: { acc: { name: x-account-id, in: header } }
  pathItems:
    circle: { $ref: '#/components/pathItems/circle' }
    order:
      parameters: [{ $ref: '#/components/parameters/acc' }]
      query: {}
      get: { callbacks: { done: { '{$request.body#/url}': { post: {} } } } }
      additionalOperations: { COPY: {} }
`);
    expect(operations.map(({ method, account }) => [method, ...account])).to.deep.equal([
      ['QUERY', 'path', 'header x-account-id'],
      ['GET', 'path', 'header x-account-id'],
      ['COPY', 'path', 'header x-account-id'],
      ['GET', 'path'],
    ]);
    expect(error).to.have.length(2);
    expect(error.join()).to.match(/same operation as .*circular/);
  });

  it('takes the path of the nearest server, of Swagger, or of the command line', () => {
    const url = (path: string) => ({
      servers: [{ url: `https://{x}.example.com${path}/`, variables: { x: { default: 'eu' } } }],
    });
    const paths = { '/a': { ...url('/item'), get: url('/own'), put: {} }, '/b': { get: {} } };
    const pathsOf = (document: object, base?: string) => cover(document, base).operations.map(({ path }) => path);
    const document = { openapi: '3.1.0', ...url('/top'), paths };
    expect(pathsOf(document)).to.deep.equal(['/own/a', '/item/a', '/top/b']);
    expect(pathsOf(document, '/cli')).to.deep.equal(['/cli/a', '/cli/a', '/cli/b']);
    expect(pathsOf({ swagger: '2.0', basePath: '/v1', paths })).to.deep.equal(['/v1/a', '/v1/a', '/v1/b']);
  });

  const foreign: readonly (readonly [string, RegExp])[] = [
    ['{"info":{"schema":"https://schema.getpostman.com/json/collection/v2.1.0/c.json"}}', /a Postman collection/],
    ['asyncapi: 3.0.0', /AsyncAPI/],
    ['#%RAML 1.0\ntitle: x', /RAML/],
    ['<!DOCTYPE html><html></html>', /an HTML page/],
    ['openapi: 4.0.0', /of version 4\.0\.0/],
    ['{"openapi":"3.0.0","paths":{},"paths":{}}', /line 1, column 32: a member is there twice/],
    ['a: [', /neither JSON nor YAML/],
    ['', /is empty/],
    ['hello', /not an OpenAPI document/],
    ['['.repeat(100_000), /neither JSON nor YAML/],
  ];
  for (const [text, line] of foreign) {
    it(`says what a file is that is no document: ${text.slice(0, 40)}`, () => {
      expect(parseOpenApi(Buffer.from(text)))
        .to.have.property('problem')
        .that.matches(line);
    });
  }
});
