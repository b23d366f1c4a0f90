// Asks the engine whether the token would be allowed under the first configuration, on a route without the account.
import { toRouteTemplate } from '../../authz/route-template.ts';
import type { Config } from '../../config/schema.ts';
import type { VerificationKey } from '../../keys/jwks.ts';
import type { IssuerKeys } from '../../token/verifier.ts';
import { toCheckRequest } from '../offline/check-request.ts';
import { createRecordedCheck } from '../offline/recorded-check.ts';

export interface FirstCheck {
  readonly isExpired: boolean;
  /** Why it is refused, without a value of the token; undefined: allowed, or every route has the account. */
  readonly refused: string | undefined;
}

/** An expired token is judged just before its end. */
export async function decideFirst(
  config: Config,
  { authorization, exp }: { readonly authorization: string; readonly exp: unknown },
  key: VerificationKey,
  now: number,
): Promise<FirstCheck> {
  const isExpired = typeof exp === 'number' && exp <= now;
  const { parameter } = config.account;
  const open = config.routes
    .map(({ path }) => toRouteTemplate(path, parameter))
    .find(({ segments }) => segments.every(({ kind }) => kind !== 'account'));
  if (open === undefined) return { isExpired, refused: undefined };
  const target = `/${open.segments.map(each => (each.kind === 'literal' ? each.value : '~any~')).join('/')}`;
  const keys: IssuerKeys = { isInForce: () => true, find: () => ({ kind: 'key', key }) };
  const check = createRecordedCheck({
    config,
    keyRings: new Map(config.issuers.map(({ issuer }) => [issuer, keys])),
    revocations: undefined,
  });
  const request = { method: 'GET', target, headers: [], certificate: undefined };
  const message = toCheckRequest({ request, authorization }, config.token);
  const { record } = await check(message, isExpired ? exp - 1 : now);
  const { reason, detail } = record;
  return {
    isExpired,
    refused: reason === 'allowed' ? undefined : `${reason}${detail === undefined ? '' : `, ${detail}`}`,
  };
}
