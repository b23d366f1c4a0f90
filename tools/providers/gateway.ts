// The request path for a provider's tokens: a real Envoy and the built product, both with the configuration of a page.
import { parse } from 'yaml';
import { startRenderedEnvoy } from '../../lab/envoy.ts';
import { headings } from '../../lab/provider-page.ts';
import { exchange, type HttpAnswer, headerValues, requestBytes } from '../../lab/raw-http.ts';
import { startRecordingUpstream } from '../../lab/recording-upstream.ts';
import { startServiceProcess } from '../../lab/service-process.ts';
import { until } from '../../lab/until.ts';
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
  /** Puts the configuration under another heading into effect. */
  configure(heading: string): Promise<void>;
  /** How many instances have refused a token as revoked. */
  revoking(): number;
  /** The provider's keys that the service has. */
  keySet(): Promise<KeySet>;
  stop(): Promise<void>;
}

// The upstream echoes the request; the service answers with a problem document (RFC 9457).
interface Body extends Pick<HttpAnswer, 'headers'> {
  readonly reason?: string;
  readonly request_id?: string;
}

/** The settings of a page with those under further headings. */
export type Settings = (...sections: readonly string[]) => Readonly<Record<string, unknown>>;

export function settingsOf(provider: Provider): Settings {
  return (...sections) => {
    // Later blocks of the page leave out what stays.
    const blocks = [headings.configuration, ...sections].map(each => provider.page.blocks(each, 'yaml')[0] ?? '');
    const settings = Object.assign({}, ...blocks.map(text => parse(replaceAll(text, provider.addresses))));
    const account = { ...settings.account, headers: ['x-account-id'], query: ['account_id'] };
    return { ...settings, keys: keyTimes, account };
  };
}

export async function startGateway(
  settings: Settings,
  heading: string = headings.configuration,
  { instances = 1, ...changes }: { readonly instances?: number; readonly revocation?: object } = {},
): Promise<Gateway> {
  const ports = { listen: '127.0.0.1:0', admin: '127.0.0.1:0' };
  const configurationOf = (section: string) => ({ ...settings(heading, section), ...changes, ...ports });
  const upstream = await startRecordingUpstream();
  const configuration = configurationOf(heading);
  const services = await Promise.all(Array.from({ length: instances }, () => startServiceProcess(configuration)));
  const [service, ...others] = services;
  if (service === undefined) throw new Error('no instance');
  const authz = services.map(({ address }) => address);
  const rendered = { ...configuration, listen: service.address };
  const envoy = await startRenderedEnvoy(rendered, { upstream: upstream.port, ...(others.length > 0 && { authz }) });
  return {
    async ask(token, request = { path: '/api/subscriptions/accounts/acme' }) {
      const { method = 'GET', host = 'api.test', path, headers } = request;
      const sent = Object.entries({ ...headers, authorization: `Bearer ${token}` }).map(line => line.join(': '));
      const bytes = requestBytes(method, path, sent).replace('Host: api.test', `Host: ${host}`);
      const send = () => exchange(envoy.port, bytes);
      const end = performance.now() + busyMs;
      let answer = await send();
      // Envoy's own 503: account-authz did not answer its check in time, because the machine is busy.
      while (answer.status === 503 && answer.body === '' && performance.now() < end) answer = await send();
      if (answer.body === '') return `${answer.status} without a body`;
      const body = JSON.parse(answer.body) as Body;
      if (answer.status !== 200) {
        const retry = headerValues(answer, 'retry-after').length > 0 ? ', Retry-After' : '';
        const { detail } = await Promise.any(services.map(each => each.logLine(body.request_id ?? '')));
        const [rule] = String(detail).split(': ');
        return `${answer.status} ${body.reason}${body.reason === 'token_invalid' ? `: ${rule}` : retry}`;
      }
      const [uid, app, acc, role] = ['uid', 'app', 'acc', 'role'].map(name =>
        headerValues(body, `x-auth-${name}`).join(),
      );
      const subject = uid === decodeToken(token).claims.sub ? '' : ', uid is not sub';
      return `200 ${role} of ${acc}, app ${app}${subject}`;
    },
    async configure(section) {
      const reloads = () => service.log().filter(({ msg }) => msg === 'configuration reloaded').length;
      const before = reloads();
      await service.configure(configurationOf(section));
      await until(() => reloads() > before);
    },
    revoking: () => services.filter(each => each.log().some(({ reason }) => reason === 'token_revoked')).length,
    async keySet() {
      const ready = await (await fetch(`http://127.0.0.1:${service.adminPort}/readyz`)).json();
      const { issuers } = ready as { readonly issuers: readonly [KeySet] };
      return issuers[0];
    },
    async stop() {
      await envoy.stop();
      await Promise.all(services.map(each => each.stop()));
      await upstream.stop();
    },
  };
}
