// A token before it is signed: its members as JSON texts, so that texts that no serializer writes are possible.
import { constants, createHmac, sign } from 'node:crypto';
import type { Row } from './changes.ts';
import type { Random } from './random.ts';
import type { Setup, Signer } from './setup.ts';

export interface GeneratedToken {
  readonly text: string;
  /** The names of the changes, without any part of the token. */
  readonly changes: readonly string[];
  /** Times at which it becomes valid or invalid. */
  readonly edges: readonly number[];
  /** Its original identity, before any change; `acc` is one of its accounts. */
  readonly acc: string;
  readonly accounts: readonly string[];
  readonly role: string;
  /** The certificate of its client, PEM; empty without one. */
  readonly certificate: string;
}

/** The context of a change to a token. */
export interface TokenContext {
  readonly random: Random;
  readonly setup: Setup;
  readonly signer: Signer;
  readonly issuer: Setup['settings']['issuers'][number];
  readonly acc: string;
  /** Times that become boundaries of the token when a change sets them. */
  readonly edges: number[];
}

/** JSON texts of a name and a value. */
export type Member = [name: string, value: string];

export interface TokenDraft {
  readonly header: Member[];
  readonly payload: Member[];
  /** Replaces the JSON of header and payload. */
  headerText: (json: string) => string | Buffer;
  payloadText: (json: string) => string | Buffer;
  /** Replaces the base64url of header and payload; signed. */
  headerSegment: (segment: string) => string;
  payloadSegment: (segment: string) => string;
  sign: (input: string) => Buffer;
  /** Replaces the finished text. */
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

/** HS256 keyed with a public value. */
export function hmacWithPublicKey(input: string, { pair }: Signer, format: 'pem' | 'der'): Buffer {
  const key =
    format === 'pem'
      ? pair.publicKey.export({ type: 'spki', format })
      : pair.publicKey.export({ type: 'spki', format });
  return createHmac('sha256', key).update(input).digest();
}

/** The second valid signature of the same key over the same text: (r, n − s) on P-256 (J-026). */
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

/** Sets the first member with this name; without one, appends it. */
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

type Change = (draft: TokenDraft, context: TokenContext) => void;
export type TokenRow = Row<Change>;

export function row(weight: number, name: string, change: Change): TokenRow {
  return [weight, name, change];
}

/** The JSON text of a name with each letter escaped. */
export function escaped(literal: string): string {
  return literal.replace(/[A-Za-z]/g, letter => `\\u00${letter.charCodeAt(0).toString(16)}`);
}
