// The test client of compose.yaml: runs the steps of the demo against the running containers, and exits with 0 only if every step is
// as expected. It shares the network of the pod. The last section, without account-authz, is that of `npm run demo` alone.
import { parseArgs } from 'node:util';
import type { AuthenticationService } from './authentication-service.ts';
import { jsonOf, send } from './http-client.ts';
import type { Demo, UpstreamState } from './local-demo.ts';
import { messageOf, runSections } from './run-sections.ts';
import type { AuthenticationState, TokenRequest } from './serve.ts';
import { Tokens } from './steps/scene.ts';
import { sectionsOf } from './steps/sections.ts';
import { createTerminal } from './terminal.ts';

const { values: addresses } = parseArgs({
  options: {
    gateway: { type: 'string', default: 'http://127.0.0.1:8080' },
    authentication: { type: 'string', default: 'http://127.0.0.1:8091' },
    upstream: { type: 'string', default: 'http://127.0.0.1:8001' },
  },
});

process.exitCode = await run().catch(error => {
  process.stderr.write(`${messageOf(error)}\n`);
  return 1;
});

async function run(): Promise<number> {
  const sections = sectionsOf(await connectDemo(), new Tokens());
  createTerminal().title('account-authz beside Envoy, in containers');
  return runSections(sections);
}

async function connectDemo(): Promise<Demo> {
  let state = await ask<AuthenticationState>(addresses.authentication, 'GET', '/state');
  const control = async (target: string): Promise<void> => {
    state = await ask(addresses.authentication, 'POST', target);
  };
  const { issuer: partner } = await ask<{ issuer: string }>(addresses.authentication, 'GET', '/partner');
  const mint =
    (target: string): AuthenticationService['signToken'] =>
    async (claims, header = {}) => {
      const request: TokenRequest = { claims, header };
      return (await ask<{ token: string }>(addresses.authentication, 'POST', target, request)).token;
    };
  return {
    gateway: addresses.gateway,
    authentication: {
      issuer: state.issuer,
      audience: state.audience,
      jwksUrl: state.jwksUrl,
      get signingKid() {
        return state.signingKid;
      },
      rotateKeys: ({ hard = false } = {}) => control(hard ? '/rotation/hard' : '/rotation'),
      signToken: mint('/tokens'),
      stop: () => control('/stop'),
      startAgain: () => control('/start'),
    },
    partner: { issuer: partner, signToken: mint('/partner/tokens') },
    upstreamState: () => ask<UpstreamState>(addresses.upstream, 'GET', '/requests'),
  };
}

async function ask<T>(origin: string, method: string, target: string, body?: object): Promise<T> {
  const response = await send({ origin, method, target, body: body && JSON.stringify(body) });
  if (response.status !== 200) throw new Error(`${method} ${origin}${target}: ${response.status} ${response.body}`);
  return jsonOf(response) as T;
}
