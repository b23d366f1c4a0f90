// Rules for what answers, logs and traces show: the token to nobody, and an answer to no other page or caller.
import type { LintModel } from './lint-model.ts';
import { type Mutation, readList } from './mutations.ts';
import type { ProtoValue } from './proto-value.ts';
import { partsOf, type Resources } from './resources.ts';
import type { Finding, Rules } from './rule.ts';

export const answerRules = {
  'cookie-origin': {
    what: 'A token may be in a cookie, and CORS lets pages of an origin that `token.origins` does not have send and read it (`allow_credentials`, which a virtual host may have for its routes, and a route for its virtual host)',
    why: 'any such page could read the answers with the rights of the user who opens it',
    fix: 'list the origins of `token.origins` as `exact`, or remove `allow_credentials`',
    find: ({ resources, policy, config: { token } }) => {
      const parts = partsOf(policy.hasCookiePlace ? resources : undefined);
      const fields = (wanted: string) => parts.flatMap(part => part.inner(name => name === wanted));
      const allowing = fields('allow_credentials')
        .filter(each => each.flag() === true)
        .map(levelsOf);
      const [own, levels] = [new Set(allowing.map(each => each.at(-1))), new Set(allowing.flat())];
      return fields('allow_origin_string_match')
        .filter(list => {
          const all = levelsOf(list);
          const isOff = list.parent.field('allow_credentials').flag() === false;
          return levels.has(all.at(-1) ?? '') || (!isOff && all.some(each => own.has(each)));
        })
        .flatMap(list => list.items())
        .filter(each => !token.origins?.includes(each.field('exact').text() ?? ''))
        .map(at => ({ at, says: 'allows an origin that is none of `token.origins`' }));
    },
  },
  'shown-token': {
    what: 'A header, a body, a tag, a log or a tap has the token of a request, such as `%REQ(authorization)%`, or the cookie that an answer sets',
    why: 'whoever reads it can use the tokens in it',
    fix: 'remove it: the log of account-authz says under the same request id who the caller is',
    find: ({ resources, policy }) => {
      const tokens = new Set(policy.headers.filter(({ kind }) => kind === 'token').flatMap(({ names }) => names));
      if (policy.hasCookiePlace) tokens.add('set-cookie');
      const isToken = (text: string): boolean => tokens.has(text.toLowerCase());
      const parts = partsOf(resources);
      const listed = parts
        .flatMap(part => part.inner(name => loggedNames.test(name)))
        .flatMap(each => each.texts(isToken));
      const shown = parts.flatMap(part => part.texts(text => text.includes('%') && showsToken(text, isToken)));
      const taps = parts.flatMap(part => part.texts(text => tap.test(text)));
      return [...listed, ...shown, ...taps].map(at => ({ at, says: 'shows the token of each request' }));
    },
  },
} as const satisfies Rules<LintModel>;

/** Of a field of a CorsPolicy: the message that has the policy, and all around it. For each field, Envoy takes the narrowest that sets it. */
function levelsOf({ path }: ProtoValue): readonly string[] {
  const end = path.findIndex(each => /^(?:typed_?per_?filter_?config|cors)$/i.test(String(each)));
  return path.slice(0, Math.max(end, 1)).map((_, i) => JSON.stringify(path.slice(0, i + 1)));
}

const loggedNames = /^(?:additional_(?:request|response)_(?:headers|trailers)_to_log|request_header)$/;
const tap = /^type\.googleapis\.com\/envoy\.extensions\.(?:filters\.http|transport_sockets)\.tap\.v3\.Tap$/;
const knownCommands: ReadonlySet<string> = new Set(
  `START_TIME EMIT_TIME REQ REQUEST_HEADER REQUEST_HEADERS REQ_WITHOUT_QUERY TRAILER RESP PROTOCOL HOSTNAME DYNAMIC_METADATA CLUSTER_METADATA
  METADATA FILTER_STATE FILTER_CHAIN_NAME ROUTE_NAME STREAM_ID UNIQUE_ID REQUESTED_SERVER_NAME ACCESS_LOG_TYPE LOCAL_REPLY_BODY PATH TRACE_ID
  SPAN_ID ENVIRONMENT`.split(/\s+/),
);
const knownFamilies = /^(?:RESPONSE|UPSTREAM|DOWNSTREAM|CONNECTION|VIRTUAL)_|^GRPC_STATUS|BYTES|DURATION$/;

/** Whether a command of Envoy's formatters prints such a header: `%REQ(FIRST?SECOND):LENGTH%`, `%RESP(NAME)%`, a CEL expression. */
function showsToken(text: string, isToken: (name: string) => boolean): boolean {
  return text.split('%').some(command => {
    const [name = '', ...rest] = command.split('(');
    const argument = rest.join('(');
    if (/^(?:TYPED_)?CEL$/.test(name)) return argument.split(/[^\w-]/).some(isToken);
    return (
      name === 'REQUEST_HEADERS' ||
      (/^(?:REQ|REQUEST_HEADER|REQ_WITHOUT_QUERY|TRAILER|RESP|RESPONSE_HEADER|RESPONSE_TRAILER)$/.test(name) &&
        (argument.split(')', 1)[0] ?? '').split('?').some(isToken))
    );
  });
}

/** What the lint does not know to be harmless in formats, and in headers of answers. */
export function unjudgedAnswers(resources: Resources): readonly Finding[] {
  const isUnknown = (text: string): boolean =>
    text.includes('%') &&
    [...text.matchAll(/%([A-Z][A-Z0-9_]{2,40})[(:%]/g)].some(
      ([, name = '']) => !knownCommands.has(name) && !knownFamilies.test(name),
    );
  return partsOf(resources).flatMap(part => [
    ...part
      .texts(isUnknown)
      .map(at => ({ at, says: 'has a substitution command that is not judged: it may print the token' })),
    ...part
      .inner(name => answerList.test(name))
      .flatMap(readList)
      .filter(each => !isHarmless(each))
      .map(({ at }) => ({
        at,
        says: 'is not judged: a browser or a cache may take the answer for one to another page or caller',
      })),
  ]);
}

const answerList = /^(?:response_headers_to_(?:add|remove)|response_mutations|headers_to_add)$/;
// Beside additions to `vary`.
const harmlessValues: ReadonlyMap<string, RegExp> = new Map([
  ['cache-control', /^(?!.*(?:public|s-maxage|=\s*")).*\b(?:no-store|no-cache|private)\b/i],
  ['access-control-allow-origin', /^\*$/],
  ['access-control-allow-credentials', /^false$/],
]);
const cacheHeaders = ['vary', 'cache-control', 'expires', 'pragma', 'surrogate-control', 'cdn-cache-control'];
const noValue =
  /^(?:set-cookie|x-accel-redirect|x-sendfile|location|refresh|expires|alt-svc|surrogate-control|cdn-cache-control|connection|content-length|transfer-encoding)$/;

function isHarmless({ at, sets, removed }: Mutation): boolean {
  if (sets === undefined) return removed(cacheHeaders).length === 0;
  const name = sets.toLowerCase();
  if (noValue.test(name)) return false;
  if (name !== 'vary') return harmlessValues.get(name)?.test(at.parent.field('value').text() ?? '') ?? true;
  const option = at.parent.parent;
  const isAppended = /^(?:0|APPEND\w*)$/i.test(option.field('append_action').scalarText() ?? '0');
  return isAppended && option.field('append').flag() !== false;
}
