// The functions that read a request before its token.
import { accountsNamed } from '../../../src/authz/account.ts';
import { accountsInQuery, compileAccountParameters } from '../../../src/authz/account-query.ts';
import { refuseAmbiguousHeaders } from '../../../src/authz/ambiguous-headers.ts';
import { parseBearerToken, refuseAmbiguousAuthorization } from '../../../src/authz/bearer.ts';
import { parseRequestTarget } from '../../../src/authz/path.ts';
import { compileRoutes, matchRoutes } from '../../../src/authz/route-tree.ts';
import { parseTraceParent } from '../../../src/check/trace-context.ts';
import { createIdentityHeaders } from '../../../src/envoy/identity-headers.ts';
import { facts } from '../../support/facts.ts';
import {
  atFullLength,
  type CostTarget,
  maxHeaderBytes,
  maxMessageBytes,
  maxTargetBytes,
  queries,
  texts,
} from './cost-target.ts';

export function requestTargets(): CostTarget[] {
  const parameters = compileAccountParameters(['account_id', 'acct']);
  const identityHeaders = createIdentityHeaders('x-auth-');
  const routes = compileRoutes(
    ['a', ':any'].flatMap(one =>
      ['a', 'b', ':any'].flatMap(two =>
        ['a', ':any'].map(three => ({ path: `/${one}/${two}/${three}/*`, characters: 'rfc3986' as const })),
      ),
    ),
  );
  const places = { headers: ['x-account-id', 'x-acct'], query: parameters, dots: false };
  return [
    {
      ...texts,
      name: 'request-target',
      maxBytes: maxMessageBytes,
      known: atFullLength(maxTargetBytes, [
        ['/', 'a/'],
        ['/a', '.', '!'],
        ['/?', '&'],
        ['/?', 'a'],
        ['/', '/'],
        ['/', '%C3%9C/'],
        ['/', '%20'],
        ['/', '%20.', '%FF'],
        ['/', '%FF'],
        ['/', '+/'],
      ]),
      load: input => () => {
        const target = parseRequestTarget(input.toString());
        return target.kind === 'refusal' ? target : matchRoutes(routes, target);
      },
    },
    {
      ...texts,
      name: 'connection and content-type',
      maxBytes: maxHeaderBytes,
      known: atFullLength(maxHeaderBytes, [
        ['', ','],
        ['', 'x-auth,'],
        ['', ' ', 'a'],
        ['', 'charset'],
        ['charset', ' '],
        ['', 'charset='],
        ['', ';charset=utf-8 '],
      ]),
      load(input) {
        const line = input.toString();
        const request = facts({ headers: { connection: line, 'content-type': line } });
        return () => refuseAmbiguousHeaders('x-auth-', places, request.headers);
      },
    },
    {
      ...texts,
      name: 'account-query',
      maxBytes: maxTargetBytes,
      known: atFullLength(maxTargetBytes - 2, queries),
      load: input => () => {
        // A target is bounded by its own limits.
        const target = parseRequestTarget(`/?${input}`);
        return target.kind === 'refusal' ? target : accountsInQuery(parameters, target.query);
      },
    },
    {
      ...texts,
      name: 'account-headers',
      maxBytes: maxHeaderBytes,
      known: atFullLength(maxHeaderBytes, [
        ['', ' '],
        ['', ' ', 'a'],
        ['', '_\n'],
        ['', 'x_account_i{n}\n'],
      ]),
      load(input) {
        // The first line is the value of an account header, all are header names.
        const lines = input.toString().split('\n', 206);
        const headers = Object.fromEntries(lines.map(line => [line, 'a']));
        const request = facts({ headers: { ...headers, 'x-account-id': lines[0] ?? '' } });
        return () => accountsNamed(places, request, '');
      },
    },
    {
      ...texts,
      name: 'bearer',
      maxBytes: maxMessageBytes,
      known: atFullLength(maxMessageBytes, [
        ['Bearer a', ' ', 'a'],
        ['', '\t', ','],
        ['', ' \n'],
        ['', ' '],
      ]),
      load(input) {
        const values = input.toString().split('\n', 206);
        return () => [refuseAmbiguousAuthorization(values), parseBearerToken(values)];
      },
    },
    {
      ...texts,
      name: 'identity-headers',
      maxBytes: maxHeaderBytes,
      known: atFullLength(maxHeaderBytes, [
        ['', 'x-auth-{n}\n'],
        ['x-auth-', '_'],
        ['x-auth-', '-', '\u00e9'],
      ]),
      load(input) {
        const names = input.toString().split('\n', 206);
        return () => identityHeaders.strayNames(names);
      },
    },
    {
      ...texts,
      name: 'traceparent',
      maxBytes: maxHeaderBytes,
      known: atFullLength(maxHeaderBytes, [
        ['01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-', 'a'],
        ['', '0'],
      ]),
      load: input => () => parseTraceParent(input.toString()),
    },
  ];
}
