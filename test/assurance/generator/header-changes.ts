// Changes to the headers of a request beside its authorization, and to its host.
import { words } from './random.ts';
import { drop, type RequestContext, type RequestRow, row } from './request-draft.ts';

export const headers: readonly RequestRow[] = [
  row(10, 'an account header of another value', (draft, context) => {
    const { random, token } = context;
    const name = accountHeader(context);
    drop(draft, name);
    const values = [
      ...words(`acct2 ${token.acc}0 ${token.acc}, ${token.acc},acct2 ${token.acc};x "${token.acc}"`),
      ...words(`${token.acc}|| |\t | ${token.acc}|${token.acc} |${token.acc.toUpperCase()}|\u00e9`, '|'),
    ];
    draft.lines.push([random.pick([name, name, name.toUpperCase()]), random.pick(values)]);
  }),
  row(3, 'an account header twice', (draft, context) => {
    const name = accountHeader(context);
    const { acc } = context.token;
    draft.lines.push(
      [name, acc],
      [context.random.pick([name, name.toUpperCase()]), context.random.pick([acc, 'acct2', ''])],
    );
  }),
  row(4, 'a look-alike of an account header', (draft, context) => {
    const name = accountHeader(context);
    const { random, token } = context;
    draft.lines.push([
      random.pick([
        name.replace('-', '_'),
        name.replaceAll('-', '_'),
        name.replaceAll('-', '_').toUpperCase(),
        `${name}_`,
        `_${name}`,
        name.replaceAll('-', '.'),
        name.replace('-', random.pick([..."!#$%&'*+.^`|~"])),
        name.replaceAll('-', () => random.pick([...'-_.~+!'])),
        name.replaceAll('-', '__'),
      ]),
      random.pick([token.acc, 'acct2', '']),
    ]);
  }),
  row(8, 'headers under our prefix', (draft, { random, setup }) => {
    const { identityPrefix: prefix } = setup.settings;
    const names = [...words('uid app acc role iss email ACC acc_ a-b é a:b'), '', 'acc\u0000', 'acc ', 'x'.repeat(300)];
    for (let i = 1 + random.below(4); i > 0; i -= 1) {
      const name = prefix + random.pick(names);
      const spelt = random.pick([
        name,
        name,
        name.toUpperCase(),
        name.replaceAll('-', '_'),
        name.replace('-', '_'),
        name.slice(0, -1),
        `x${name}`,
        prefix.slice(0, -1),
      ]);
      draft.lines.push([spelt, random.pick(['acct2', '', 'a,b'])]);
    }
  }),
  row(4, 'another request id', (draft, { random }) => {
    drop(draft, 'x-request-id');
    const values = linesIn(`x-request-id:|x-request-id:a b|x-request-id:${'a'.repeat(129)}|X-Request-Id:r-2`);
    const more = linesIn('x-request-id:"quoted"|x-request-id:\u00e9|x_request_id:r-3|x-request-id:r-4\n');
    draft.lines.push(random.pick([...values, ...more]));
    if (random.chance(0.2)) draft.lines.push(['x-request-id', 'r-5']);
  }),
  row(3, 'connection or content-type, ambiguous or not', (draft, context) => {
    const { random, setup } = context;
    const line = (name: string, ...values: readonly string[]): [string, string] => [name, random.pick(values)];
    draft.lines.push(
      random.pick([
        line('connection', 'upgrade', 'close, te', '', accountHeader(context), 'te,'.repeat(random.pick([250, 260]))),
        line('Connection', `${setup.settings.identityPrefix}acc`, `Upgrade, ${accountHeader(context).toUpperCase()}`),
        line('content-type', 'text/plain', 'text/plain; charset=utf-8', 'a/b;Charset=US-ASCII', ''),
        line('content-type', 'text/plain; charset=utf-7', 'a/b; charset="utf-8"', "a/b; charset*=x''utf-8"),
        line('content-type', 'a/b; charset=utf-8; charset=utf-8', 'a/b; charset=latin1'),
      ]),
    );
  }),
  row(5, 'another place of the token', (draft, { random, setup, token }) => {
    const place = random.pick(setup.settings.from);
    const text = random.pick([token.text, token.text, 'x', '', `"${token.text}"`, `${token.text},x`, ' ']);
    if (place === 'authorization')
      draft.lines.push(['authorization', random.pick([`Bearer ${text}`, 'Basic eDp5', '', text])]);
    else if ('header' in place)
      draft.lines.push([
        random.pick([place.header, place.header.toUpperCase(), place.header.replaceAll('-', '_')]),
        text,
      ]);
    else if ('subprotocol' in place)
      draft.lines.push([
        random.pick(
          'sec-websocket-protocol Sec-WebSocket-Protocol sec-websocket_protocol upgrade connection'.split(' '),
        ),
        random.pick([
          `${place.subprotocol}, ${text}`,
          place.subprotocol,
          `${place.subprotocol.toUpperCase()}, x`,
          'websocket',
          'upgrade',
          'h2c',
          'caf\u00e9',
        ]),
      ]);
    else
      draft.lines.push([
        'cookie',
        random.pick([
          `${place.cookie}=${text}`,
          `a=1; ${place.cookie} = ${text} ; b`,
          place.cookie,
          `${place.cookie.toUpperCase()}=x`,
          ';'.repeat(random.pick([250, 260])),
        ]),
      ]);
  }),
  row(4, 'the origin of another page, or an upgrade', (draft, { random }) => {
    if (random.chance(0.5)) drop(draft, 'origin');
    const origins = linesIn('origin:https://evil.test|origin:null|Origin:https://app.test|origin:https://app.test/');
    const upgrades = linesIn('connection:Upgrade|connection:keep-alive, upgrade|connection:x-id-token');
    draft.lines.push(random.pick([...origins, ...upgrades]));
  }),
  row(4, 'headers that must not matter', (draft, { random }) => {
    const overrides = linesIn(
      'x-forwarded-uri:/api/subscriptions/accounts/acct2|x-original-url:/|x-http-method-override:DELETE',
    );
    const others = linesIn(
      'forwarded:host=evil|cookie:a=b|__proto__:x|constructor:y|:|traceparent:00-1|x-envoy-original-path:/acct2',
    );
    draft.lines.push(random.pick([...overrides, ...others]));
  }),
];

export const hosts: readonly RequestRow[] = [
  row(9, 'another host', (draft, { random, token }) => {
    const host = draft.host.replace(/:[0-9]+$/, '');
    draft.host = random.pick([
      ...words('. : :443 evil.test api.test.evil.test xapi.test test API.TEST api.other.test kept.test'),
      ...words(`|\u212aept.test|${host}.|.${host}|x.${host}`, '|'),
      host.toUpperCase(),
      ...words(`${host}:99999 ${host}: ${host}:x acct2.api.test ACCT2.api.test acct3.api.test -a.api.test`),
      ...words(`a-.api.test a_b.api.test ${token.acc}.api.test ${token.acc}.eu.API.test`),
      ...words(`${'x'.repeat(64)}.api.test *.api.test ${token.acc}.x.api.test acct1%2eapi.test user@api.test`),
      ...words('[::1]|[::1]:8080|10.0.0.1|api.test\u0000| api.test|api.test |\u212a.api.test|\u0130.api.test', '|'),
      ...words('xn--a.api.test api.test,api.test'),
      ...[253, 254].map(length => `${'a'.repeat(length - 9)}.api.test${random.pick(['', ':65535'])}`),
    ]);
  }),
  row(4, 'another host or :authority beside the attribute', (draft, { random }) =>
    draft.lines.push([
      random.pick(['host', 'Host', ':authority']),
      random.pick([draft.host, draft.host, draft.host.toUpperCase(), 'acct2.api.test', 'api.test', '', 'evil.test']),
    ]),
  ),
  row(3, 'a header that names another host', (draft, { random }) =>
    draft.lines.push([
      random.pick(words('x-forwarded-host forwarded X-Original-Host x_forwarded_host x-host x-forwarded_server')),
      random.pick(['acct2.api.test', '']),
    ]),
  ),
];

/** Lines such as `name:value`. */
function linesIn(text: string): [name: string, value: string][] {
  return words(text, '|').map(line => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]);
}

function accountHeader({ random, setup }: RequestContext): string {
  const { accountHeaders } = setup.settings;
  return accountHeaders.length === 0 ? 'x-account-id' : random.pick(accountHeaders);
}
