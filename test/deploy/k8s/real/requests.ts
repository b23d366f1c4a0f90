// Requests and their expected outcomes behind any gateway: the promises of the product as the client and the upstream see them.

import { exchange, headerValues, requestBytes } from '../../../../lab/raw-http.ts';
import { bearer, identity, type Lab, ownedFields } from '../../../e2e/lab.ts';

export interface Row {
  readonly request: string;
  readonly answer: string;
  readonly upstream: string;
  readonly good: boolean;
}

interface Case {
  readonly name: string;
  readonly method?: string;
  readonly target: string;
  readonly lines?: readonly string[];
  /** Any of these is correct: gateways differ in which part refuses. */
  readonly statuses: readonly number[];
}

const own = '/api/subscriptions/accounts/acct1/items';

/** Sends each request to the port; the last ones with account-authz stopped. */
export async function sendAll(port: number, lab: Lab): Promise<Row[]> {
  const authorization = `Authorization: ${await bearer()}`;
  const reader = `Authorization: ${await bearer({ role: 'member' })}`;
  const cases: readonly Case[] = [
    { name: 'a good token', target: own, lines: [authorization], statuses: [200] },
    {
      name: 'a good token at the protected path itself',
      target: '/api/subscriptions',
      lines: [authorization],
      statuses: [200],
    },
    { name: 'no token', target: own, statuses: [401] },
    { name: 'a token that is none', target: own, lines: ['Authorization: Bearer x.y.z'], statuses: [401] },
    { name: 'two tokens', target: own, lines: [authorization, authorization], statuses: [400] },
    {
      name: 'the account of another',
      target: '/api/subscriptions/accounts/acct2/items',
      lines: [authorization],
      statuses: [403],
    },
    {
      name: 'the account of another in a header',
      target: own,
      lines: [authorization, 'X-Account-Id: acct2'],
      statuses: [403],
    },
    {
      name: 'the account of another in the query',
      target: `${own}?account_id=acct2`,
      lines: [authorization],
      statuses: [403],
    },
    {
      name: 'the account of another in a header spelt with dots',
      target: own,
      lines: [authorization, 'X.Account.Id: acct2'],
      statuses: [200, 400],
    },
    {
      name: 'another method in a header, spelt with dots too',
      target: own,
      lines: [authorization, 'X-HTTP-Method-Override: DELETE', 'X.Http.Method: DELETE'],
      statuses: [200],
    },
    { name: 'a reader who writes', method: 'DELETE', target: own, lines: [reader], statuses: [403] },
    {
      name: 'forged identity headers',
      target: own,
      lines: [authorization, 'X-Auth-Acc: acct2', 'X-Auth-Email: root@acct2', 'x-auth-role: admin'],
      statuses: [200],
    },
    {
      name: 'forged identity headers with underscores',
      target: own,
      lines: [authorization, 'X_Auth_Acc: acct2'],
      statuses: [400],
    },
    {
      name: 'a header that names another path',
      target: own,
      lines: [authorization, 'X-Original-Url: /admin'],
      statuses: [200],
    },
    {
      name: 'a neighbour of the protected path',
      target: '/api/subscriptionsX',
      lines: [authorization],
      statuses: [403, 404],
    },
    { name: 'another path', target: '/', lines: [authorization], statuses: [403, 404] },
    { name: 'the protected path in capitals', target: '/API/subscriptions', statuses: [403, 404] },
    { name: 'dot segments into the protected path', target: '/x/../api/subscriptions', statuses: [401] },
    { name: 'doubled slashes', target: '//api//subscriptions', statuses: [401] },
    { name: 'an escaped slash', target: '/api%2Fsubscriptions', statuses: [400, 401] },
    {
      name: 'an escaped slash behind',
      target: '/api/subscriptions/..%2f..%2fadmin',
      lines: [authorization],
      statuses: [400, 403, 404],
    },
  ];
  const rows: Row[] = [];
  for (const each of cases) rows.push(await ask(port, lab, each));
  await lab.service.stop();
  rows.push(
    await ask(port, lab, { name: 'account-authz is stopped', target: own, lines: [authorization], statuses: [503] }),
  );
  rows.push(await ask(port, lab, { name: 'account-authz is stopped, no token', target: own, statuses: [503] }));
  return rows;
}

async function ask(port: number, lab: Lab, { name, method = 'GET', target, lines, statuses }: Case): Promise<Row> {
  lab.upstream.clear();
  const answer = await exchange(port, requestBytes(method, target, lines));
  const { requests } = lab.upstream;
  const [reached] = requests;
  const headers = new Set(reached?.headers.map(([key]) => key.toLowerCase()));
  const identityIsOurs = JSON.stringify(reached && ownedFields(reached)) === JSON.stringify(identity);
  const hidesCredentials = [...headers].every(
    key => !/^(authorization|x-original-url|x\W(http|account)\W.*)$/.test(key),
  );
  const isClean = identityIsOurs && hidesCredentials;
  const isAllowed = answer.status === 200;
  return {
    request: name,
    answer: `${answer.status}${reasonOf(answer.body)}${headerValues(answer, 'server').map(server => ` by ${server}`)}`,
    upstream: requests.length === 0 ? 'not reached' : isClean ? 'our headers alone' : `reached: ${[...headers]}`,
    good: statuses.includes(answer.status) && (isAllowed ? requests.length === 1 && isClean : requests.length === 0),
  };
}

function reasonOf(body: string): string {
  return body.startsWith('{"') && body.includes('"reason"') ? ` ${JSON.parse(body).reason}` : '';
}
