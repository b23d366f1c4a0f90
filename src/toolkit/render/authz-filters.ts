// The HTTP filters around the check: what is removed from trailers, CORS, ext_authz and the guard behind it.
import {
  extAuthzSettings,
  filterNames,
  guardFilter,
  guardReason,
  trailerMutations,
} from '../envoy-settings/authz-filter.ts';
import { extension, typed } from '../envoy-settings/extension.ts';
import { toMembers } from '../envoy-settings/setting.ts';
import type { EnvoySettings } from '../envoy-settings/settings.ts';
import { above, beside, inline, type Members, type Tree } from '../envoy-settings/tree.ts';

/** In their order. Nothing after ext_authz may change the path, the route or the identity headers. */
export function authzFilters(settings: EnvoySettings): readonly Tree[] {
  const check = toMembers(extAuthzSettings(settings));
  const extAuthz = extension(filterNames.extAuthz, 'filters.http.ext_authz.v3.ExtAuthz', check);
  if (settings.isShadow) return [extAuthz];
  return [
    trailersFilter(settings),
    ...corsFilter(settings),
    ...(settings.takesGrpcWeb ? [extension('envoy.filters.http.grpc_web', 'filters.http.grpc_web.v3.GrpcWeb')] : []),
    extAuthz,
    above(guardReason, guardFilter(filterNames.guard)),
  ];
}

export function trailersFilter(settings: EnvoySettings): Members {
  return extension(filterNames.trailers, 'filters.http.header_mutation.v3.HeaderMutation', {
    mutations: {
      request_trailers_mutations: above(
        'Removes the same names, the account headers and the token from trailers: no check sees trailers, and a service over HTTP/2 gets them.',
        trailerMutations(settings),
      ),
    },
  });
}

export const corsReason =
  'Answers preflight requests before the check, which would refuse them: a browser sends them without a token.';

function corsFilter({ corsOrigins }: EnvoySettings): readonly Tree[] {
  if (corsOrigins.length === 0) return [];
  return [above(corsReason, extension(filterNames.cors, 'filters.http.cors.v3.Cors'))];
}

function credentialsOf({ hasCookiePlace }: EnvoySettings): Tree {
  return hasCookiePlace
    ? beside(true, 'the token is in a cookie (token.from)')
    : beside(false, 'no cookies: the token is in a header');
}

/** What a page may send and read. */
function corsHeadersOf({
  headers,
  methods,
  accountHeaders,
  corsHeaders,
  corsExposed,
  takesGrpcWeb,
  rewrittenHeaders,
}: EnvoySettings) {
  const ofGrpcWeb = takesGrpcWeb ? ['x-grpc-web', 'x-user-agent', 'grpc-timeout'] : [];
  const tokens = headers.filter(
    ({ kind, names }) => kind === 'token' && !names.some(name => rewrittenHeaders.includes(name)),
  );
  const usual = ['content-type', 'if-match', 'if-none-match', 'traceparent', 'tracestate'];
  return {
    allowMethods: methods,
    allowHeaders: [
      ...new Set([...tokens.flatMap(({ names }) => names), ...usual, ...accountHeaders, ...ofGrpcWeb, ...corsHeaders]),
    ],
    // Envoy replaces the list of the service.
    exposeHeaders: [
      ...new Set([
        ...['x-request-id', 'www-authenticate', 'retry-after', 'etag', 'link', 'location'],
        ...(takesGrpcWeb ? ['grpc-status', 'grpc-message'] : []),
        ...corsExposed,
      ]),
    ],
  };
}

/** In the words of gateways. */
export function corsPolicy(settings: EnvoySettings, maxAge: string | number): Members | undefined {
  const allowOrigins = settings.corsOrigins;
  if (allowOrigins.length === 0) return undefined;
  return { allowOrigins, ...corsHeadersOf(settings), maxAge, allowCredentials: credentialsOf(settings) };
}

/** For the virtual host. Refusals carry the headers too, so that a page can read them; the filter leaves Envoy's own 404 alone. */
export function corsMembers(settings: EnvoySettings, filterName: string): Members {
  const { allowMethods, allowHeaders, exposeHeaders } = corsHeadersOf(settings);
  if (settings.corsOrigins.length === 0) return {};
  return {
    typed_per_filter_config: {
      [filterName]: typed('filters.http.cors.v3.CorsPolicy', {
        allow_origin_string_match: settings.corsOrigins.map(origin => inline({ exact: origin })),
        allow_methods: allowMethods.join(', '),
        allow_headers: allowHeaders.join(', '),
        expose_headers: exposeHeaders.join(', '),
        max_age: '600',
        allow_credentials: credentialsOf(settings),
      }),
    },
    response_headers_to_add: beside(
      [{ header: inline({ key: 'vary', value: 'origin' }), append_action: 'APPEND_IF_EXISTS_OR_ADD' }],
      'a cache must not answer one origin with the headers for another',
    ),
  };
}
