// A token before it is signed: its members as the texts that they will be, so that every text can be written that no serializer would.
import { constants, createHmac, sign } from 'node:crypto';
import type { Random } from './random.ts';
import type { Setup, Signer } from './setup.ts';

export interface GeneratedToken {
  readonly text: string;
  /** Names of what was changed; they say nothing of the text. */
  readonly changes: readonly string[];
  /** Times at which it starts or stops being good. */
  readonly edges: readonly number[];
  /** Who it was made for, before any change. */
  readonly acc: string;
  readonly role: string;
}

/** What a change to a token may look at. */
export interface TokenContext {
  readonly random: Random;
  readonly setup: Setup;
  readonly signer: Signer;
  readonly issuer: Setup['settings']['issuers'][number];
  readonly acc: string;
  /** Times that become edges of the token when a change sets them. */
  readonly edges: number[];
}

/** JSON texts of a name and a value. */
export type Member = [name: string, value: string];

export interface TokenDraft {
  readonly header: Member[];
  readonly payload: Member[];
  /** What stands for the JSON of the two. */
  headerText: (json: string) => string | Buffer;
  payloadText: (json: string) => string | Buffer;
  /** What stands for the base64url of the two; it is signed over. */
  headerSegment: (segment: string) => string;
  payloadSegment: (segment: string) => string;
  sign: (input: string) => Buffer;
  /** What stands for the finished text. */
  readonly finish: ((token: string) => string)[];
}

export function createDraft(header: Member[], payload: Member[], signer: Signer): TokenDraft {
  const same = (text: string): string => text;
  return {
    header,
    payload,
    headerText: same,
    payloadText: same,
    headerSegment: same,
    payloadSegment: same,
    sign: input => signature(input, signer),
    finish: [],
  };
}

export function tokenText(draft: TokenDraft): string {
  const header = draft.headerSegment(base64url(draft.headerText(json(draft.header))));
  const payload = draft.payloadSegment(base64url(draft.payloadText(json(draft.payload))));
  const input = `${header}.${payload}`;
  const token = `${input}.${base64url(draft.sign(input))}`;
  return draft.finish.reduce((text, change) => change(text), token);
}

export function signature(input: string, { alg, pair }: Signer): Buffer {
  const { privateKey: key } = pair;
  const bytes = Buffer.from(input);
  const hash = `sha${alg.slice(2)}`;
  if (alg.startsWith('Ed')) return sign(null, bytes, key);
  if (alg.startsWith('ES')) return sign(hash, bytes, { key, dsaEncoding: 'ieee-p1363' });
  if (alg.startsWith('RS')) return sign(hash, bytes, key);
  const padding = constants.RSA_PKCS1_PSS_PADDING;
  return sign(hash, bytes, { key, padding, saltLength: constants.RSA_PSS_SALTLEN_DIGEST });
}

/** HS256 keyed with what everybody knows. */
export function hmacWithPublicKey(input: string, { pair }: Signer, format: 'pem' | 'der'): Buffer {
  const key =
    format === 'pem'
      ? pair.publicKey.export({ type: 'spki', format })
      : pair.publicKey.export({ type: 'spki', format });
  return createHmac('sha256', key).update(input).digest();
}

/** The other signature of the same key over the same text: (r, n − s) on P-256 (security-cases.md J-026). */
export function twinSignature(bytes: Buffer): Buffer {
  const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
  const s = order - BigInt(`0x${bytes.toString('hex', 32, 64)}`);
  return Buffer.concat([bytes.subarray(0, 32), Buffer.from(s.toString(16).padStart(64, '0'), 'hex')]);
}

export function derSignature(input: string, { alg, pair }: Signer): Buffer {
  return sign(`sha${alg.slice(2)}`, Buffer.from(input), { key: pair.privateKey, dsaEncoding: 'der' });
}

export function base64url(text: string | Buffer): string {
  return Buffer.from(text).toString('base64url');
}

/** The first member of the name gets the value; without one it is added at the end. */
export function set(members: Member[], name: string, value: unknown): void {
  const literal = JSON.stringify(name);
  const text = JSON.stringify(value);
  const found = members.find(([each]) => each === literal);
  if (found === undefined) members.push([literal, text]);
  else found[1] = text;
}

export function drop(members: Member[], name: string): void {
  const at = members.findIndex(([each]) => each === JSON.stringify(name));
  if (at !== -1) members.splice(at, 1);
}

function json(members: readonly Member[]): string {
  return `{${members.map(member => member.join(':')).join(',')}}`;
}
