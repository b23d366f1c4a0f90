// The identities and times of generated tokens: names that differ by as little as possible.
import { createHash } from 'node:crypto';

/** The base time of all tokens, seconds since the epoch. */
export const baseTime = 1_800_000_000;

export const accounts = [
  ...'acct1 acct2 acct10 ACCT1 a.b A-b_c~9 ... - ~ _ 0 7 12345678901 accounts acct3 acct-2 acct4 n-1 subscriptions items constructor __proto__ null'.split(
    ' ',
  ),
  'x'.repeat(128),
] as const;

/** Those that fit the label of a host. */
export const hostAccounts: readonly string[] = accounts.filter(each =>
  /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(each),
);

/** PEM of client certificates, whose bytes do not matter, and the `x5t#S256` of each. */
export const certificates = ['one', 'two'].map(each => {
  const bytes = Buffer.from(`the certificate ${each}, long enough for a second line of its text`);
  const base64 = bytes.toString('base64').replace(/.{64}/, line => `${line}\n`);
  const pem = `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n`;
  return { pem, thumbprint: createHash('sha256').update(bytes).digest('base64url') };
});

/** Values of `jti` and `sid`. */
export const tokenIds = ['t-1', 'T-1', 't-10', '0', 'a\u0000b', 'ü', ' t-1', 'x'.repeat(200), '7f3c'] as const;

export const uids = ['u-1', '0', '17', '9007199254740991', "!#$%&'()*+-./:<=>?@[\\]^_`{|}~", 'u'.repeat(128)] as const;
