// Key pairs for generated tokens, created once a run: published ones, weak ones, and those of a stranger.
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import type { PublishedKey } from '../oracle/issuer-keys.ts';

export interface KeyPair {
  readonly publicKey: KeyObject;
  readonly privateKey: KeyObject;
  /** The algorithms of its key type. */
  readonly algorithms: readonly [string, ...string[]];
  readonly isStrong: boolean;
}

export interface KeyPairs {
  readonly published: readonly KeyPair[];
  readonly strangers: readonly KeyPair[];
}

const rsa = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'] as const;

let made: KeyPairs | undefined;

export function keyPairs(): KeyPairs {
  made ??= {
    published: [
      ec('P-256', 'ES256'),
      ec('P-256', 'ES256'),
      ec('P-256', 'ES256'),
      ed25519(),
      ed25519(),
      rsaPair(2048, 65537),
      rsaPair(2048, 65537),
      ec('P-384', 'ES384'),
      ec('P-521', 'ES512'),
      { ...rsaPair(1024, 65537), isStrong: false },
      { ...rsaPair(2048, 3), isStrong: false },
    ],
    strangers: [ec('P-256', 'ES256'), ed25519(), rsaPair(2048, 65537)],
  };
  return made;
}

function ec(namedCurve: string, algorithm: string): KeyPair {
  return { ...generateKeyPairSync('ec', { namedCurve }), algorithms: [algorithm], isStrong: true };
}

function ed25519(): KeyPair {
  return { ...generateKeyPairSync('ed25519'), algorithms: ['EdDSA', 'Ed25519'], isStrong: true };
}

function rsaPair(modulusLength: number, publicExponent: number): KeyPair {
  return { ...generateKeyPairSync('rsa', { modulusLength, publicExponent }), algorithms: rsa, isStrong: true };
}

export function publishedKey(
  { publicKey }: KeyPair,
  members: Pick<PublishedKey, 'kid' | 'alg' | 'use' | 'x5t' | 'x5t#S256'>,
): PublishedKey {
  return { ...publicKey.export({ format: 'jwk' }), ...members };
}
