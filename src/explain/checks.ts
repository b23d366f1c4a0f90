// The checks of a request in the order in which they are made (product.md section 4). Names only: whether one passes is for the
// engine to say.

export const checkNames = [
  'message',
  'method',
  'path',
  'authorization',
  'account-places',
  'route',
  'token-present',
  'token-length',
  'token-format',
  'issuer',
  'algorithm',
  'token-type',
  'key',
  'signature',
  'audience',
  'binding',
  'claims',
  'times',
  'expiry',
  'app',
  'role',
  'account',
] as const;

export type CheckName = (typeof checkNames)[number];

/** Whether the one check is made after the other. */
export function isAfter(one: CheckName, other: CheckName): boolean {
  return checkNames.indexOf(one) > checkNames.indexOf(other);
}
