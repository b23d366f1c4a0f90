// What a gateway answers that the controller of Envoy Gateway has made, with account-authz there, away and back.
import { Agent, get, type OutgoingHttpHeaders } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { shownHeaders } from './answers.ts';
import type { Authentication } from './authentication.ts';
import { kubectl, until, untilSettled } from './kubectl.ts';
import type { ClusterRun } from './run.ts';

const namespace = 'subscriptions';
const field = '{.status.addresses[0].value}';

/** After docs/deploy/envoy-gateway.md; `setUp` says with what. */
export async function gatewaySteps(
  authentication: Authentication,
  setUp: string,
  add: ClusterRun['add'],
): Promise<void> {
  const address = await kubectl(['get', 'gateway', '-n', namespace, 'subscriptions', '-o', `jsonpath=${field}`]);
  const url = `http://${address}/api/subscriptions/accounts`;
  const authorization = `Bearer ${await authentication.sign({})}`;
  const forged = { authorization, 'x-auth-uid': 'root', 'x-auth-role': 'admin', 'x-auth-future': 'any' };
  const row = (what: string, expected: string, measured: string): void =>
    add({ what: `the gateway, ${setUp}: ${what}`, expected, measured, isGood: measured === expected });
  const scale = (replicas: number): Promise<string> =>
    kubectl(['scale', '-n', namespace, 'deployment/account-authz', `--replicas=${replicas}`]);

  const allowed = '200 x-auth-uid: user-alice, x-auth-acc: acme, x-auth-role: owner';
  row('its own account, with forged headers', allowed, await ask(`${url}/acme`, forged));
  row('another account', '403 account_mismatch', await ask(`${url}/globex`, { authorization }));

  await scale(0);
  await untilSettled(namespace, 'app.kubernetes.io/name=account-authz', 0);
  await delay(5000);
  row('account-authz scaled to 0', '503', await ask(`${url}/acme`, { authorization }));

  // The gateway may give its Envoy other filters now, and a connection keeps those of its beginning.
  const keptAlive = new Agent({ keepAlive: true, maxSockets: 1 });
  await ask(url, {}, keptAlive);
  await scale(2);
  let unchecked = 0;
  const watchedUntilMs = performance.now() + 30_000;
  while (performance.now() < watchedUntilMs) {
    for (const agent of [keptAlive, undefined]) if ((await ask(url, {}, agent)).startsWith('200')) unchecked += 1;
    await delay(20);
  }
  keptAlive.destroy();
  row('account-authz is back; requests without a token that reached the app, in 30 s', '0', String(unchecked));
  const back = await until('an allow', 60, async () => {
    const answer = await ask(`${url}/acme`, forged);
    return answer.startsWith('200') ? answer : undefined;
  }).catch(String);
  row('account-authz is back, its own account', allowed, back);
}

/** The status with the reason of a refusal, or with what the app sees. Without an agent, over a connection of its own. */
function ask(url: string, headers: OutgoingHttpHeaders, agent: Agent | false = false): Promise<string> {
  return new Promise(resolve => {
    get(url, { headers, agent }, answer => {
      let text = '';
      answer.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      answer.once('end', () => {
        const status = answer.statusCode ?? 0;
        if (status === 200) resolve(`200 ${shownHeaders(text, /^x-auth-(uid|role|acc|future)$|^authorization$/)}`);
        else resolve([status, ...(text.startsWith('{') ? [JSON.parse(text).reason] : [])].join(' '));
      });
    }).once('error', error => resolve(error.message));
  });
}
