// The test client of compose.yaml: tells the demo's story against the running containers, and exits with 0 only if every step went
// as expected. It shares the network of the pod, and the processes of account-authz, which it can so halt and let go on.
import { parseArgs } from 'node:util';
import { authorizerPids } from './authorizer-process.ts';
import { jsonOf, send } from './http-client.ts';
import type { AuthenticationState, TokenOrder } from './serve.ts';
import type { Reached, Setting } from './stage.ts';
import { story } from './story.ts';
import { lineOf, messageOf, terminalFor } from './telling.ts';
import type { StepLine } from './terminal.ts';

const { values: places } = parseArgs({
  options: {
    gateway: { type: 'string', default: 'http://127.0.0.1:8080' },
    authentication: { type: 'string', default: 'http://127.0.0.1:8091' },
    upstream: { type: 'string', default: 'http://127.0.0.1:8001' },
    authorizer: { type: 'string', default: '/app/dist/main.js' },
  },
});

process.exitCode = await tell().catch(error => {
  process.stderr.write(`${messageOf(error)}\n`);
  return 1;
});

async function tell(): Promise<number> {
  const chapters = story(await runningSetting(), { session: '', refresh: '', owner: '', member: '', backend: '' });
  const terminal = terminalFor(chapters);
  terminal.title('account-authz beside Envoy, in containers');
  terminal.heads();
  const lines: StepLine[] = [];
  for (const [index, { title, steps }] of chapters.entries()) {
    terminal.title(`${index + 1}  ${title}`);
    for (const step of steps) {
      const line = await lineOf(step);
      lines.push(line);
      terminal.step(line);
    }
  }
  const failed = lines.filter(line => !line.ok);
  terminal.verdict(`${lines.length - failed.length} of ${lines.length} steps as expected`, failed.length === 0);
  for (const line of failed) terminal.step(line);
  return failed.length === 0 ? 0 : 1;
}

async function runningSetting(): Promise<Setting> {
  let state = await ask<AuthenticationState>(places.authentication, 'GET', '/state');
  const tell = async (target: string): Promise<void> => {
    state = await ask(places.authentication, 'POST', target);
  };
  return {
    gateway: places.gateway,
    authentication: {
      issuer: state.issuer,
      audience: state.audience,
      jwksUrl: state.jwksUrl,
      get signingKid() {
        return state.signingKid;
      },
      rotateKeys: ({ hard = false } = {}) => tell(hard ? '/rotation/hard' : '/rotation'),
      async signToken(claims, header = {}) {
        const order: TokenOrder = { claims, header };
        return (await ask<{ token: string }>(places.authentication, 'POST', '/tokens', order)).token;
      },
      stop: () => tell('/stop'),
      startAgain: () => tell('/start'),
    },
    reached: () => ask<Reached>(places.upstream, 'GET', '/requests'),
    stopAuthorizer: () => signalAuthorizer('SIGSTOP'),
    startAuthorizer: () => signalAuthorizer('SIGCONT'),
  };
}

async function ask<T>(origin: string, method: string, target: string, body?: object): Promise<T> {
  const response = await send({
    origin,
    method,
    target,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (response.status !== 200) throw new Error(`${method} ${origin}${target}: ${response.status} ${response.body}`);
  return jsonOf(response) as T;
}

/** Halted, it holds its port and answers nothing: to Envoy the same as gone. */
async function signalAuthorizer(signal: 'SIGSTOP' | 'SIGCONT'): Promise<void> {
  const pids = await authorizerPids(places.authorizer);
  if (pids.length === 0) throw new Error(`no process that runs ${places.authorizer} serve is visible`);
  for (const pid of pids) process.kill(pid, signal);
}
