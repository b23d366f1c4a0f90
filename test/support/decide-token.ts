// Decides a request with the engine, for a token with this header and these claims, signed with a key of every configured issuer.
import { signingKey } from '../../lab/signing-key.ts';
import { token } from '../../lab/token.ts';
import { toAccountGrammar } from '../../src/authz/places/places.ts';
import { type CheckResult, createEngine } from '../../src/check/engine.ts';
import { expandIssuers } from '../../src/config/issuer-templates.ts';
import { configSchema } from '../../src/config/schema.ts';
import { parseKeySet } from '../../src/keys/jwks.ts';
import { facts } from './facts.ts';
import { fixedKeyRings } from './fixed-key-rings.ts';

export interface Decoded {
  /** With `kid: undefined` it has none, else that of the key. */
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
  const parsed = configSchema.parse(configuration);
  const config = { ...parsed, issuers: expandIssuers(parsed.issuers, toAccountGrammar(parsed.account)) };
  const engine = createEngine({ config, keyRings: fixedKeyRings(config, set), now: () => now });
  const hasKid = !('kid' in header) || header.kid !== undefined;
  const headerText = JSON.stringify({ ...header, kid: hasKid ? key.kid : undefined });
  const authorization = `Bearer ${await token({ key, headerText, payloadText: JSON.stringify(claims) })}`;
  const target = `/api/subscriptions/accounts/${request.account}`;
  return engine.decide(facts({ target, method: request.method ?? 'GET', headers: { authorization } }));
}
