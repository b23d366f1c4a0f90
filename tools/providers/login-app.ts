// The login and consent app that every installation of Hydra has, with the token hook for services. It sends the JSON documents of
// docs/providers/hydra.md, with the account and the roles of its records.
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** The value of `session.access_token` by user or client. */
export type Records = ReadonlyMap<string, Readonly<Record<string, unknown>>>;

export interface LoginAppOptions {
  readonly adminUrl: string;
  readonly users: Records;
  readonly services: Records;
  /** The documents of the page. */
  readonly consent: Document;
  readonly hook: Document;
}

interface Document {
  readonly session: { readonly access_token: unknown };
}

export interface LoginApp {
  readonly url: string;
  stop(): Promise<void>;
}

interface Answer {
  readonly status: number;
  readonly location?: string;
  readonly body?: string;
}

export async function startLoginApp(options: LoginAppOptions): Promise<LoginApp> {
  const server = createServer(async (request, response) => {
    const failed = (error: unknown): Answer => ({ status: 500, body: String(error) });
    const { status, location, body } = await answer(request, options).catch(failed);
    response.writeHead(status, location === undefined ? {} : { location }).end(body);
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () =>
      new Promise(resolve => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(request: IncomingMessage, options: LoginAppOptions): Promise<Answer> {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://127.0.0.1');
  const body = await text(request);
  const challenge = searchParams.get('login_challenge') ?? searchParams.get('consent_challenge') ?? '';
  if (pathname === '/token-hook') return answerHook(JSON.parse(body), options);
  if (pathname === '/consent') return consent(challenge, options);
  if (request.method === 'POST') {
    const subject = new URLSearchParams(body).get('username');
    return accept(options, 'login', challenge, { subject });
  }
  return {
    status: 200,
    body: `<form method="post" action="/login?login_challenge=${encodeURIComponent(challenge)}"></form>`,
  };
}

async function consent(challenge: string, options: LoginAppOptions): Promise<Answer> {
  const asked = await fetch(`${options.adminUrl}/admin/oauth2/auth/requests/consent?consent_challenge=${challenge}`);
  const { subject, requested_scope, requested_access_token_audience } = (await asked.json()) as ConsentRequest;
  return accept(options, 'consent', challenge, {
    ...withRecord(options.consent, options.users.get(subject)),
    grant_scope: requested_scope,
    grant_access_token_audience: requested_access_token_audience,
  });
}

interface ConsentRequest {
  readonly subject: string;
  readonly requested_scope: readonly string[];
  readonly requested_access_token_audience: readonly string[];
}

async function accept(
  { adminUrl }: LoginAppOptions,
  kind: 'login' | 'consent',
  challenge: string,
  body: unknown,
): Promise<Answer> {
  const url = `${adminUrl}/admin/oauth2/auth/requests/${kind}/accept?${kind}_challenge=${encodeURIComponent(challenge)}`;
  const headers = { 'content-type': 'application/json' };
  const accepted = await fetch(url, { method: 'PUT', headers, body: JSON.stringify(body) });
  if (!accepted.ok) throw new Error(`${accepted.status}: ${await accepted.text()}`);
  const { redirect_to } = (await accepted.json()) as { readonly redirect_to: string };
  return { status: 302, location: redirect_to };
}

function answerHook(
  { request }: { readonly request: { readonly client_id: string } },
  { hook, services }: LoginAppOptions,
): Answer {
  const record = services.get(request.client_id);
  return record === undefined ? { status: 204 } : { status: 200, body: JSON.stringify(withRecord(hook, record)) };
}

function withRecord(document: Document, record: unknown): Document {
  return { ...document, session: { access_token: record ?? {} } };
}
