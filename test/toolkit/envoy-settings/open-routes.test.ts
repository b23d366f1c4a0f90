// The pattern of a public route with `characters: rfc3986` takes the paths that account-authz takes on such a route.
import fc from 'fast-check';
import { RE2JS } from 're2js';
import { parseRequestTarget } from '../../../src/authz/path.ts';
import { compileRoutes, matchRoutes } from '../../../src/authz/route-tree.ts';
import { publicPathPattern } from '../../../src/toolkit/envoy-settings/open-routes.ts';
import { runs } from '../../support/foreign-bytes.ts';

const pattern = RE2JS.compile(publicPathPattern({ path: '/files', subtree: true, characters: 'rfc3986' }));
const routes = compileRoutes([{ path: '/files/*', characters: 'rfc3986' }]);

const isServed = (path: string): boolean => pattern.testExact(path);
function isPermitted(path: string): boolean {
  const target = parseRequestTarget(path);
  return target.kind === 'target' && matchRoutes(routes, target).kind === 'match';
}

const encoded = (bytes: Iterable<number>): string =>
  Array.from(bytes, byte => `%${byte.toString(16).padStart(2, '0')}`).join('');
const piece = fc.oneof(
  fc.constantFrom(
    ...".%20,.. . ~ a ' ( $ ; // / % %2 %zz %25 %2e %2F %3b %7f %c2%85 %c2%a0 %e2%80%83 %ef%bb%bf".split(/[ ,]/),
  ),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 2 }).map(text => encoded(Buffer.from(text))),
  fc.uint8Array({ minLength: 1, maxLength: 4 }).map(encoded),
  fc.constantFrom('0', 'Z', '%C3%BC', '%E6%97%A5', '%F0%9F%98%80'),
);
const below = fc.array(piece, { minLength: 1, maxLength: 6 }).map(parts => parts.join(''));

describe('the pattern of a public route with characters: rfc3986', () => {
  it('takes no path that account-authz would refuse on such a route', () => {
    fc.assert(
      fc.property(below, text => !isServed(`/files/${text}`) || isPermitted(`/files/${text}`)),
      runs(2000),
    );
  });

  it('takes every other one with a letter in each segment', () => {
    const named = below.map(text => `/files/a${text.replaceAll('/', '/a')}`);
    fc.assert(
      fc.property(named, text => isServed(text) === isPermitted(text)),
      runs(2000),
    );
  });
});
