// X.509 certificates for TLS tests, made when they are needed: none lies in the repository to expire.
import { createPrivateKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { secrets } from './secrets.ts';

export interface TestCertificate {
  /** PEM */
  readonly cert: string;
  /** PEM, PKCS #8 */
  readonly key: string;
}

export interface TestCertificateOptions {
  /** The subject's common name, and for an authority the name that it signs under. */
  readonly name?: string;
  readonly dnsNames?: readonly string[];
  /** IPv4 */
  readonly addresses?: readonly string[];
  /** Signs with it; without one the certificate is its own authority. */
  readonly authority?: TestCertificate & { readonly name: string };
  readonly isAuthority?: boolean;
  readonly namedCurve?: string;
  /** From now on, negative for the past. */
  readonly validFromHours?: number;
  readonly validForHours?: number;
}

export function testCertificate(options: TestCertificateOptions = {}): TestCertificate & { readonly name: string } {
  const {
    name = 'test',
    dnsNames = [],
    addresses = ['127.0.0.1'],
    authority,
    isAuthority = false,
    namedCurve = 'P-256',
  } = options;
  const { validFromHours = -1, validForHours = 24 } = options;
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve });
  const fromMs = Date.now() + validFromHours * 3_600_000;
  const names = [
    ...dnsNames.map(dnsName => der(0x82, Buffer.from(dnsName))),
    ...addresses.map(address => der(0x87, Buffer.from(address.split('.').map(Number)))),
  ];
  const basicConstraints = sequence(...(isAuthority ? [der(0x01, Buffer.from([0xff]))] : []));
  const extensions = sequence(
    extension('2.5.29.19', basicConstraints),
    ...(names.length === 0 ? [] : [extension('2.5.29.17', sequence(...names))]),
  );
  const tbs = sequence(
    der(0xa0, integer(2)),
    integer(Math.floor(Math.random() * 0x7fffffff) + 1),
    ecdsaWithSha256,
    commonName(authority?.name ?? name),
    sequence(time(fromMs), time(fromMs + validForHours * 3_600_000)),
    commonName(name),
    publicKey.export({ format: 'der', type: 'spki' }),
    der(0xa3, extensions),
  );
  const signer: KeyObject = authority === undefined ? privateKey : createPrivateKey(authority.key);
  const signature = sign('sha256', tbs, signer);
  const certificate = sequence(tbs, ecdsaWithSha256, der(0x03, Buffer.from([0]), signature));
  const base64 = certificate.toString('base64').replace(/.{64}(?=.)/g, '$&\n');
  const key = privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();
  // RFC 7518 names few curves; a key on another one can only be shown as PEM.
  if (namedCurve.startsWith('P-')) secrets.mint('private key', privateKey.export({ format: 'jwk' }).d ?? '');
  for (const line of key.split('\n').filter(text => !text.startsWith('-----'))) secrets.mint('private key', line);
  return { name, cert: `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n`, key };
}

// Distinguished encoding (X.690), as far as a certificate needs it.
function der(tag: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function sequence(...contents: readonly Buffer[]): Buffer {
  return der(0x30, ...contents);
}

function integer(value: number): Buffer {
  const hex = value.toString(16);
  const bytes = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex');
  return der(0x02, ...(bytes.readUInt8(0) > 0x7f ? [Buffer.alloc(1)] : []), bytes);
}

function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number);
  const bytes = rest.flatMap(arc => {
    const sevens = [arc & 0x7f];
    for (let left = arc >> 7; left > 0; left >>= 7) sevens.unshift((left & 0x7f) | 0x80);
    return sevens;
  });
  return der(0x06, Buffer.from([first * 40 + second, ...bytes]));
}

function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, '');
  return der(0x17, Buffer.from(digits.slice(2)));
}

function commonName(name: string): Buffer {
  return sequence(der(0x31, sequence(oid('2.5.4.3'), der(0x0c, Buffer.from(name)))));
}

function extension(id: string, value: Buffer): Buffer {
  return sequence(oid(id), der(0x04, value));
}

const ecdsaWithSha256 = sequence(oid('1.2.840.10045.4.3.2'));
