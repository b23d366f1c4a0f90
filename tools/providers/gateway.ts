// The request path for a provider's tokens: a real Envoy with the shipped envoy.yaml, and the built product with the configuration of a page.
import { parse } from 'yaml';
import { startEnvoy } from '../../lab/envoy.ts';
import { headings } from '../../lab/provider-page.ts';
import { type HttpAnswer, headerValues } from '../../lab/raw-http.ts';
import { startRecordingUpstream } from '../../lab/recording-upstream.ts';
import { startServiceProcess } from '../../lab/service-process.ts';
import { decodeToken } from './oauth.ts';
import { replaceAll } from './page.ts';
import type { Provider, Request } from './provider.ts';

/** Shorter than the defaults, so that the trial takes minutes. */
export const keyTimes = { refreshSeconds: 20, cooldownSeconds: 5, maxAgeSeconds: 40, timeoutSeconds: 3 };

/** How long a request is repeated while Envoy gets no answer to its check. */
const busyMs = 10_000;

export interface KeySet {
  readonly kids: readonly string[];
  readonly ageSeconds: number;
}

export interface Gateway {
  /** The answer to a request with the token, in short: `200 member of acme, app web`, `403 account_mismatch`, or with the
   * detail of the log `401 token_invalid: aud names none of audiences`. */
  ask(token: string, request?: Request): Promise<string>;
  /** The provider's keys that the service has. */
  keySet(): Promise<KeySet>;
  stop(): Promise<void>;
}

// The upstream echoes the request; the service answers with a problem document (RFC 9457).
interface Body extends Pick<HttpAnswer, 'headers'> {
  readonly reason?: string;
  readonly request_id?: string;
}

/** With the configuration under the heading of the page. */
export async function startGateway(provider: Provider, heading: string = headings.configuration): Promise<Gateway> {
  const [text = ''] = provider.page.blocks(heading, 'yaml');
  const upstream = await startRecordingUpstream();
  const service = await startServiceProcess({
    ...parse(replaceAll(text, provider.addresses)),
    listen: '127.0.0.1:0',
    admin: '127.0.0.1:0',
    keys: keyTimes,
    account: { headers: ['x-account-id'], query: ['account_id'] },
  });
  const envoy = await startEnvoy({ authz: service.address, upstream: upstream.port });
  return {
    async ask(token, { method = 'GET', path, headers } = { path: '/api/subscriptions/accounts/acme' }) {
      const url = `http://127.0.0.1:${envoy.port}${path}`;
      const send = () => fetch(url, { method, headers: { ...headers, authorization: `Bearer ${token}` } });
      const end = performance.now() + busyMs;
      let answer = await send();
      let text = await answer.text();
      // Envoy's own 503: account-authz did not answer its check in time, because the machine is busy.
      while (answer.status === 503 && text === '' && performance.now() < end) {
        answer = await send();
        text = await answer.text();
      }
      if (text === '') return `${answer.status} without a body`;
      const body = JSON.parse(text) as Body;
      if (answer.status !== 200) {
        const retry = answer.headers.has('retry-after') ? ', Retry-After' : '';
        const { detail } = await service.logLine(body.request_id ?? '');
        const [rule] = String(detail).split(': ');
        return `${answer.status} ${body.reason}${body.reason === 'token_invalid' ? `: ${rule}` : retry}`;
      }
      const [uid, app, acc, role] = ['uid', 'app', 'acc', 'role'].map(name =>
        headerValues(body, `x-auth-${name}`).join(),
      );
      const subject = uid === decodeToken(token).claims.sub ? '' : ', uid is not sub';
      return `200 ${role} of ${acc}, app ${app}${subject}`;
    },
    async keySet() {
      const ready = await (await fetch(`http://127.0.0.1:${service.adminPort}/readyz`)).json();
      const { issuers } = ready as { readonly issuers: readonly [KeySet] };
      return issuers[0];
    },
    async stop() {
      await envoy.stop();
      await service.stop();
      await upstream.stop();
    },
  };
}
