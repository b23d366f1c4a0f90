// What a client gets from the deployed pods and what the app behind them gets to see, before anything is restarted.
import { askFrom, podsOf } from './kubectl.ts';
import type { ClusterRun } from './run.ts';

interface Case {
  readonly what: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Status, and reason of a refusal by account-authz. */
  readonly expected: string;
}

const own = '/api/subscriptions/accounts/acme';

/** Each pod answers each request as account-authz decides, and the app sees the identity of the token and no forged one. */
export async function answerSteps(run: ClusterRun, token: string): Promise<void> {
  const authorization = `Bearer ${token}`;
  const cases: readonly Case[] = [
    { what: 'its own account', path: own, headers: { authorization }, expected: '200' },
    {
      what: 'another account in the path',
      path: '/api/subscriptions/accounts/globex',
      headers: { authorization },
      expected: '403 account_mismatch',
    },
    {
      what: 'another account in a header',
      path: own,
      headers: { authorization, 'x-account-id': 'globex' },
      expected: '403 account_mismatch',
    },
    { what: 'no token', path: own, expected: '401 token_missing' },
    {
      what: 'a changed token',
      path: own,
      headers: { authorization: `${authorization.slice(0, -8)}AAAAAAAA` },
      expected: '401 token_invalid',
    },
    {
      what: 'a path that no route has',
      path: '/metrics',
      headers: { authorization },
      expected: run.deployed.name.startsWith('istio') ? '403' : '404',
    },
  ];
  for (const { what, path, headers = {}, expected } of cases) {
    await inEachPod(run, what, expected, async url => {
      const answer = await run.load.ask(`${url}${path}`, headers);
      const isProblem = answer.headers['content-type'] === 'application/problem+json';
      return [answer.status, ...(isProblem ? [JSON.parse(answer.text).reason] : [])].join(' ');
    });
  }
  const seen = 'x-auth-uid: user-alice, x-auth-app: web-app, x-auth-acc: acme, x-auth-role: owner';
  await inEachPod(run, 'forged identity headers; the app sees', seen, async url => {
    const forged = { 'x-auth-uid': 'root', 'x-auth-acc': 'globex', 'x-auth-role': 'admin', 'x-auth-future': 'any' };
    const { text } = await run.load.ask(`${url}${own}`, { authorization, ...forged });
    return shownHeaders(text, /^x-auth-(?!iss)|^authorization$/);
  });
}

/** Adds one row: the answer if all pods give the same. */
export async function inEachPod(
  run: ClusterRun,
  what: string,
  expected: string,
  ask: (url: string) => Promise<string>,
): Promise<void> {
  const { namespace, labels, entryLabels = labels, port } = run.deployed;
  const answers = new Set<string>();
  for (const { address } of await podsOf(namespace, entryLabels)) answers.add(await ask(`http://${address}:${port}`));
  const measured = [...answers].join('; ');
  run.add({ what: `${what}, asked of each pod`, expected, measured, isGood: measured === expected });
}

/** Those headers that the app of the demo got whose name matches. */
export function shownHeaders(text: string, pattern: RegExp): string {
  const { headers } = JSON.parse(text) as { headers: readonly (readonly [string, string])[] };
  const shown = headers.filter(([name]) => pattern.test(name));
  return shown.map(([name, value]) => `${name}: ${value}`).join(', ');
}

/** A token of the demo's own authentication service, which is in the pod. */
export async function quickstartToken(namespace: string): Promise<string> {
  const post = async (path: string, options: RequestInit): Promise<Readonly<Record<string, string>>> => {
    const at = ['-n', namespace, 'deployment/subscriptions', '-c', 'app'];
    return JSON.parse((await askFrom(at, `http://127.0.0.1:8090${path}`, { method: 'POST', ...options })).text);
  };
  const body = JSON.stringify({ user: 'alice', password: 'wonderland' });
  const headers = { 'content-type': 'application/json' };
  const { session_token: session } = await post('/auth/sign-in', { headers, body });
  const issued = await post('/api/accounts/acme/token', { headers: { authorization: `Bearer ${session}` } });
  return issued.access_token ?? '';
}
