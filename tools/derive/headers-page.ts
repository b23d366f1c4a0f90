// docs/headers.md: what happens to each header name, from the one table of the product.
import type { HeaderRule } from '../../src/headers/header-rule.ts';
import { type HeaderConfig, toHeaderRules } from '../../src/headers/headers.ts';

const example: HeaderConfig = {
  identityHeaders: 'x-auth-',
  token: {
    from: ['authorization', { header: 'x-id-token' }, { cookie: 'token' }, { subprotocol: 'bearer' }],
    forward: false,
  },
  account: {
    headers: ['x-account-id'],
    query: ['account_id'],
    hosts: [':account_id.api.example.com'],
    parameter: 'account_id',
    dots: false,
    case: 'exact',
  },
};

/** Why a rule is there only with some configurations. */
const conditions: readonly (readonly [name: string, condition: string])[] = [
  ['x-auth-*', 'the prefix `identityHeaders`'],
  ['x-account-id', 'each of `account.headers`'],
  ['content-type', 'with `account.query`'],
  ['forwarded', 'with `account.hosts`'],
  ['x-id-token', 'each header of `token.from`'],
  ['cookie', 'with a cookie in `token.from`'],
  ['sec-websocket-protocol', 'with a subprotocol in `token.from`'],
  ['upgrade', 'with a subprotocol'],
  ['origin', 'with a cookie or a subprotocol'],
  ['authorization', 'with `token.forward` it stays, except in trailers'],
];

const answers = {
  sets: 'sets six and those of `forwardClaims`, removes the others that it is shown',
  removes: 'removes it',
  rewrites: 'leaves what is not the token',
} as const;

const places = { everywhere: 'on every route', checked: 'on checked routes', public: 'on public routes' } as const;

export function makeHeadersPage(): string {
  const rows = toHeaderRules(example, 1).map(rule => `| ${cells(rule).join(' | ')} |`);
  return `# Headers

<!-- npm run derive writes this page from src/headers/headers.ts. -->

What \`render\` tells Envoy, and account-authz answers, about header names. Envoy removes a name before the check, whatever sign stands in place of a hyphen (\`x_auth_uid\`,
\`x.auth.uid\`): servers read these as one name. With \`--trusted-hops\` 0, the default, \`x-forwarded-prefix\` is removed on every route.

| header | why | shown to the check | Envoy removes it | an allow |
|---|---|---|---|---|
${rows.join('\n')}
`;
}

function cells({ names, why, shown, removed, inTrailers, allow }: HeaderRule): readonly string[] {
  const condition = conditions.find(([name]) => names.includes(name))?.[1];
  return [
    `${names.map(name => `\`${name}\``).join(', ')}${condition === undefined ? '' : ` (${condition})`}`,
    why,
    shown === undefined ? '' : shown === 'exactly' ? 'yes' : 'yes, and its other spellings, which are refused',
    [...(removed === undefined ? [] : [places[removed]]), ...(inTrailers ? ['from trailers'] : [])].join(', '),
    allow === undefined ? '' : answers[allow],
  ];
}
