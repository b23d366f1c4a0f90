// The last sections: keys are rotated, removed and unavailable; then account-authz is down.
import { jsonOf } from '../http-client.ts';
import { deriveAccountToken } from '../oauth-client.ts';
import type { Section } from '../run-sections.ts';
import { type Scene, step } from './scene.ts';

export function keys({ demo, tokens, call, request, requestAfter, owner, member, minted }: Scene): Section {
  const { authentication } = demo;
  return {
    title: 'Keys: rotated, removed, unavailable',
    steps: [
      requestAfter('keys rotated: a token of the new key', '200', { token: minted() }, () =>
        authentication.rotateKeys(),
      ),
      request('a token of the previous key', '200', { token: owner }),
      requestAfter('older keys removed: a token of the new key', '200', { token: owner }, async () => {
        await authentication.rotateKeys({ hard: true });
        const response = await deriveAccountToken(authentication.issuer, tokens.session, 'acme');
        tokens.owner = String(jsonOf(response).access_token);
      }),
      request('a token of a removed key', '401 token_invalid', { token: member }),
      step('authentication down: a token of a known key', '200', async () => {
        await authentication.stop();
        return call({ token: owner });
      }),
      requestAfter('a token of a key that cannot be fetched', '503 keys_unavailable', { token: member }, async () => {
        await authentication.rotateKeys();
        tokens.member = await minted({ acc: 'globex', role: 'member' })();
      }),
      step('the 503 has Retry-After', 'Retry-After', async () => {
        const { response } = await call({ token: member });
        const seconds = response.headers['retry-after'] ?? '';
        return { actual: /^[1-9]\d*$/.test(seconds) ? 'Retry-After' : 'nothing', notes: [`in ${seconds} s`] };
      }),
      request('a token of a known key, still', '200', { token: owner }),
      requestAfter('authentication back: recovers by itself', '200', { token: member }, () =>
        authentication.startAgain(),
      ),
    ],
  };
}

export function outage({ demo, call, request, requestAfter, owner }: Scene): Section | undefined {
  const { authorizer } = demo;
  if (authorizer === undefined) return undefined;
  return {
    title: 'account-authz is down: Envoy refuses everything',
    steps: [
      step('account-authz stopped', '503 from Envoy', async () => {
        await authorizer.stop();
        return call({ token: owner });
      }),
      request('a request without a token', '503 from Envoy', {}),
      requestAfter('account-authz started again', '200', { token: owner }, authorizer.start),
    ],
  };
}
