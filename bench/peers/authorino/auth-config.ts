// The same checks as an AuthConfig of Authorino, and as much of a definition of that kind as an API needs to serve it. Written for
// speed: each evaluator of Authorino has the request and the claims made into JSON anew, and each predicate in CEL has that JSON
// parsed, so that there is one predicate for everything, and selectors, which search the text, where a selector will do.

export interface AuthConfigSettings {
  /** As the requests name it. */
  readonly host: string;
  /** Where its discovery document is; `issuer` is what tokens call it. */
  readonly issuerUrl: string;
  readonly issuer: string;
  readonly audience: string;
  /** For how long a token that was verified is not verified again; never kept if not given. */
  readonly cacheSeconds?: number;
}

const group = 'authorino.kuadrant.io';
const version = 'v1beta3';
export const namespace = 'default';

export const definitionsPath = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
export const authConfigsPath = `/apis/${group}/${version}/namespaces/${namespace}/authconfigs`;

/** Names and version of Authorino's own definition; takes any fields, as those of one that is known to be right need no check. */
export const authConfigDefinition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `authconfigs.${group}` },
  spec: {
    group,
    names: { kind: 'AuthConfig', listKind: 'AuthConfigList', plural: 'authconfigs', singular: 'authconfig' },
    scope: 'Namespaced',
    versions: [
      {
        name: version,
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        subresources: { status: {} },
      },
    ],
  },
};

const identity = ['uid', 'app', 'acc', 'role', 'iss'];

export function authConfig({ host, issuerUrl, issuer, audience, cacheSeconds }: AuthConfigSettings) {
  return {
    apiVersion: `${group}/${version}`,
    kind: 'AuthConfig',
    metadata: { name: 'bench', namespace },
    spec: {
      hosts: [host],
      authentication: {
        token: {
          // Signature, exp and nbf.
          jwt: { issuerUrl },
          ...(cacheSeconds === undefined ? {} : { cache: { key: { selector: authorization }, ttl: cacheSeconds } }),
        },
      },
      authorization: {
        access: {
          patternMatching: {
            patterns: [
              ...tokenHeader,
              { predicate: predicate({ issuer, audience, isCached: cacheSeconds !== undefined }) },
            ],
          },
        },
      },
      response: {
        success: {
          headers: Object.fromEntries(
            identity.map(claim => [`x-auth-${claim}`, { plain: { selector: `auth.identity.${claim}` } }]),
          ),
          // Each member on its own would be an evaluator of its own.
          dynamicMetadata: {
            'account-authz': {
              json: {
                properties: {
                  decision: { value: 'allow' },
                  reason: { value: 'allowed' },
                  ...Object.fromEntries(identity.map(claim => [claim, { selector: `auth.identity.${claim}` }])),
                },
              },
            },
          },
        },
      },
    },
  };
}

const authorization = 'request.headers.authorization';
const segment = (text: string, separator: string, at: number): string =>
  `${text}|@extract:{"sep":"${separator}","pos":${at}}`;

/** The header of the token, which Authorino does not show beside the claims: its key, its type, and nothing that changes what it says. */
const header = `${segment(segment(authorization, ' ', 1), '.', 0)}|@base64:decode|@fromstr`;
const meaning = `${header}|{typ,crit,b64,zip,jwk,jku,x5u}`;
const tokenHeader = [
  { selector: `${header}|kid`, operator: 'neq', value: '' },
  // An expression is compiled anew each time that it is asked.
  {
    any: [
      { selector: meaning, operator: 'eq', value: '{"typ":"JWT"}' },
      { selector: meaning, operator: 'matches', value: '^\\{"typ":"(?i:(application/)?(jwt|at\\+jwt))"\\}$' },
    ],
  },
];

const visible = '[!#-+\\--:<-~]';
const names = `^${visible}+ ${visible}+ ${visible}+ [A-Za-z0-9._~-]+$`;
// Any segment but an empty one, `.` and `..`.
const path = '^(/(\\.*[A-Za-z0-9_~:@-][A-Za-z0-9._~:@-]*|\\.\\.\\.+))+/?$';

/** All that Authorino has not refused by then; an operand that is missing or of another type is a refusal. */
function predicate({ issuer, audience, isCached }: { issuer: string; audience: string; isCached: boolean }): string {
  const [uid, app, acc, role] = identity.map(claim => `auth.identity.${claim}`);
  const now = 'request.time.seconds';
  const conditions = [
    'size(request.headers.authorization) <= 8199',
    '!request.headers.authorization.startsWith("Bearer  ")',

    `auth.identity.iss == ${text(issuer)}`,
    `${text(audience)} in (type(auth.identity.aud) == string ? [auth.identity.aud] : auth.identity.aud)`,
    '!has(auth.identity.cnf)',
    ...(isCached ? [`${now} < auth.identity.exp + 30.0`] : []),
    `(!has(auth.identity.nbf) || auth.identity.nbf <= ${now} + 30.0)`,
    `(has(auth.identity.iat)
      ? auth.identity.iat <= ${now} + 30.0 && auth.identity.iat <= auth.identity.exp
        && auth.identity.exp - auth.identity.iat <= 86400.0
      : auth.identity.exp - ${now} <= 86400.0)`,
    `(${uid} + " " + ${app} + " " + ${role} + " " + ${acc}).matches(${text(names)})`,
    ...[uid, app, acc, role].map(claim => `size(${claim}) <= 128`),
    `!(${acc} in [".", ".."])`,

    `(${role} == "member" ? request.method in ["GET", "HEAD"]
      : ${role} == "admin" ? request.method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
      : ${role} == "owner" && request.method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])`,

    '(!(":path" in request.headers) || request.headers[":path"] == request.path)',
    '(!(":method" in request.headers) || request.headers[":method"] == request.method)',
    'size(request.path) <= 8192',
    `[request.path.split("?")[0]].all(path, size(path) <= 2048 && path.matches(${text(path)})
      && [path.split("/")].all(at, at[1] == "api" && at[2] == "subscriptions"
        && (size(at) < 4 || (at[3] == "accounts" ? size(at) < 5 || at[4] == "" || at[4] == ${acc}
            && (size(at) < 6 || (at[5] == "billing" ? ${role} in ["owner", "admin"] : at[5].lowerAscii() != "billing"))
          : at[3].lowerAscii() != "accounts"))))`,

    `(!("x-account-id" in request.headers) || request.headers["x-account-id"] == ${acc})`,
    ...['x_account_id', 'x-account_id', 'x_account-id'].map(name => `!("${name}" in request.headers)`),
    `(!request.path.contains("?") || request.path.substring(request.path.indexOf("?") + 1).split("&")
      .all(parameter, !parameter.matches(${text(accountParameter)}) || parameter == "account_id=" + ${acc}))`,
  ];
  return conditions.join('\n&& ');
}

const encoded = (...codes: readonly string[]): string => `%(25)*(${codes.join('|')})`;
const padding = `(\\+|\\s|${encoded('09', '20', '2b')})*`;
/** A parameter that some parser would take for `account_id`. */
const accountParameter = [
  `(?i)(^|;|${encoded('3b')})${padding}`,
  ...Array.from('account_id', letter => {
    const code = letter.charCodeAt(0);
    return letter === '_'
      ? `(_|\\.|${encoded('5f', '2e')})`
      : `(${letter}|${encoded(code.toString(16), (code - 0x20).toString(16))})`;
  }),
  `${padding}($|[=;[]|${encoded('3d', '3b', '5b')})`,
].join('');

/** As a literal of CEL, whose escapes are those of JSON. */
function text(value: string): string {
  return JSON.stringify(value);
}
