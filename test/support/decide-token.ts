// Decides a request with the engine, for a token with this header and these claims, signed with a key of every configured issuer.

import { signingKey } from '../../lab/signing-key.ts';
import { token } from '../../lab/token.ts';
import { type CheckResult, createEngine } from '../../src/check/engine.ts';
import { configSchema } from '../../src/config/schema.ts';
import { parseKeySet } from '../../src/keys/jwks.ts';
import { facts } from './facts.ts';
import { fixedKeyRings } from './fixed-key-rings.ts';

export interface Decoded {
  readonly header: Readonly<Record<string, unknown>>;
  readonly claims: Readonly<Record<string, unknown>>;
}

/** `now` in epoch seconds. */
export async function decideToken(
  { header, claims }: Decoded,
  configuration: unknown,
  now: number,
  request: { readonly account: string; readonly method?: string },
): Promise<CheckResult> {
  const algorithm = String(header.alg);
  const key = await signingKey('r1', algorithm);
  const set = await parseKeySet(Buffer.from(JSON.stringify({ keys: [key.publicJwk] })), [algorithm]);
  if (set.kind === 'problem') throw new Error(set.problem);
  const config = configSchema.parse(configuration);
  const engine = createEngine({ config, keyRings: fixedKeyRings(config, set), now: () => now });
  const headerText = JSON.stringify({ ...header, kid: key.kid });
  const authorization = `Bearer ${await token({ key, headerText, payloadText: JSON.stringify(claims) })}`;
  const target = `/api/subscriptions/accounts/${request.account}`;
  return engine.decide(facts({ target, method: request.method ?? 'GET', headers: { authorization } }));
}
