// What a refused client is told, so that it can get a token that would do: the scopes to ask for, and whether the metadata of the protected
// resource names where (RFC 6750 section 3, RFC 9728 section 5.1).
import { type Permissions, permittedNames } from './permission.ts';
import { answerOf, type Refusal } from './refusal.ts';
import { literalStart } from './route-template.ts';
import type { RouteMatch } from './route-tree.ts';

export interface ProtectedResource {
  /** The path of its URL. */
  readonly path: string;
  /** Those that a client asks for first; undefined: each. */
  readonly scopes: ReadonlySet<string> | undefined;
}

interface ChallengePolicy {
  readonly scopes: Permissions | undefined;
  readonly resource: ProtectedResource | undefined;
}

interface ChallengedRequest {
  readonly method: string;
  readonly match: RouteMatch;
}

const maxScopes = 10;

/** The refusal with its hint, if its reason has a challenge. */
export function challenged(
  { scopes, resource }: ChallengePolicy,
  { method, match }: ChallengedRequest,
  refused: Refusal,
): Refusal {
  const { challenge } = answerOf(refused.reason);
  if (challenge === undefined) return refused;
  const enough = scopes === undefined ? [] : permittedNames(scopes, 'scopes', method, match);
  const first = challenge === 'insufficient_scope' ? [] : enough.filter(name => resource?.scopes?.has(name));
  const isOfResource =
    resource !== undefined && match.routes.some(({ template }) => isUnder(resource, literalStart(template)));
  return { ...refused, hint: { scopes: (first.length > 0 ? first : enough).slice(0, maxScopes), isOfResource } };
}

/** By whole segments. A slash at its end does not matter. */
export function isUnder({ path }: Pick<ProtectedResource, 'path'>, start: string): boolean {
  const prefix = path.replace(/\/$/, '');
  return start === prefix || start.startsWith(`${prefix}/`);
}
