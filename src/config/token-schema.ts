// The schema of `token`: its bounds, and the places of a request where it may be.
import * as z from 'zod';
import { isJsonObject, itemsOf, memberOf } from '../json/strict-json.ts';
import { isLoopbackUrl, isOrigin } from '../text/url.ts';
import { accountHeader, evenIfInvalid, integer, list, mapping, patternedText, report, text } from './value-schemas.ts';

// A token of RFC 9110 section 5.6.2.
const tokenPattern = "[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}";

const place = z.union(
  [
    z.literal('authorization'),
    mapping({
      header: accountHeader('x-id-token, or authorization alone without header').meta({
        description: 'The whole value of this header is the token.',
      }),
    }),
    mapping({
      cookie: patternedText(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/, 'must be the name of a cookie').meta({
        description: 'The value of this cookie is the token. Needs origins.',
      }),
    }),
    mapping({
      subprotocol: text(subprotocolProblem).meta({
        pattern: `^(?!eyJ[\\w-]*\\.)${tokenPattern}$`,
        description:
          'On a WebSocket handshake, the item after this one in Sec-WebSocket-Protocol is the token, and leaves the list. Needs origins.',
      }),
    }),
  ],
  { error: () => 'must be authorization, { header: NAME }, { cookie: NAME } or { subprotocol: NAME }' },
);

const originPattern =
  '^(?!https://.*:443$|http://.*:80$)(?:https://[^*/?#@A-Z\\s]+|http://(?:localhost|127\\.[0-9.]+|\\[::1\\])(?::[0-9]+)?)$';

export const token = mapping({
  clockToleranceSeconds: integer(0, 300).default(30).meta({
    description: 'How far the clocks may differ where exp, nbf and iat are judged, in seconds.',
  }),
  maxLifetimeSeconds: integer(1).default(86_400).meta({
    description: 'Longest accepted life of a token, in seconds: exp - iat, or the time until exp where it has no iat.',
  }),
  maxBytes: integer(256, 65_536).default(8192).meta({ description: 'Longest accepted token, in bytes.' }),
  forward: z.boolean().default(false).meta({
    description: 'Whether the token is left in place for the upstream. It is removed otherwise.',
  }),
  from: list(place, { noun: 'place', sameBy: placeName, max: 4 })
    .default(['authorization'])
    .meta({
      description:
        'Where a request may carry its token: the first of these places that it has counts. authorization (Bearer), { header: NAME }, { cookie: NAME } or { subprotocol: NAME }.',
      examples: [
        ['authorization', { cookie: '__Host-token' }],
        ['authorization', { subprotocol: 'bearer' }],
      ],
    }),
  origins: list(text(originProblem).meta({ pattern: originPattern }), { noun: 'origin' })
    .exactOptional()
    .meta({
      description:
        'The pages that may send a token in a cookie with a method other than GET, HEAD and OPTIONS, or open a WebSocket with one in a cookie or a subprotocol. Required with either.',
      examples: [['https://app.example.com']],
    }),
}).superRefine((value: unknown, context) => {
  const isOfPages = itemsOf(memberOf(value, 'from')).some(each =>
    ['cookie', 'subprotocol'].some(kind => memberOf(each, kind) !== undefined),
  );
  const hasOrigins = memberOf(value, 'origins') !== undefined;
  if (isOfPages && !hasOrigins)
    report(context, 'is required with a cookie or a subprotocol: the origins of the pages that may send it', [
      'origins',
    ]);
  if (hasOrigins && !isOfPages)
    report(context, 'must be left out without a cookie or a subprotocol in from', ['origins']);
}, evenIfInvalid);

function originProblem(origin: string): string | undefined {
  return isOrigin(origin) && (origin.startsWith('https://') || isLoopbackUrl(origin))
    ? undefined
    : 'must be an origin as browsers send it, such as https://app.example.com (http only for loopback addresses): lower case, without default port, path, slash at the end and wildcard';
}

function subprotocolProblem(name: string): string | undefined {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/.test(name)) return 'must be the name of a subprotocol such as bearer';
  return /^eyJ[\w-]*\./.test(name) ? 'must be a name such as bearer, not a token' : undefined;
}

/** Header names are case-insensitive. */
function placeName(item: unknown): unknown {
  if (!isJsonObject(item)) return item;
  return Object.entries(item)
    .map(([kind, name]) => `${kind} ${kind === 'header' ? String(name).toLowerCase() : String(name)}`)
    .join();
}
