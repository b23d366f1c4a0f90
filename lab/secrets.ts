// The secret scan: tests register secrets and outputs, and a root hook of mocha searches every output for every secret after the last
// test. It reports the kind of secret and the output, never the secret.
import { randomBytes } from 'node:crypto';

/** `identity` is uid, app, acc or role of a verified token; those of any other token are a `claim`, as all other claims are. */
export type SecretKind = 'token' | 'private key' | 'claim' | 'identity' | 'query string' | 'header';

/** Every kind of output, and whether it may contain the identity of a verified token. */
const outputs = {
  log: true,
  'answer to Envoy': true,
  explanation: true,
  'access log': true,
  refusal: false,
  'HTTP answer': false,
  trace: false,
  command: false,
  'standard error': false,
  'key file': false,
  demo: false,
  'test run': false,
} as const;
export type Output = keyof typeof outputs;

export interface SecretWatch {
  /** Registers a text of which no 47 consecutive characters may be shown: a token, or a member of a private key. */
  mint(kind: SecretKind, text: string): void;
  /** Mints a unique text of 24 characters, usable as an identity field, a path segment, a query and a header. */
  fresh(kind: SecretKind): string;
  show(output: Output, text: string): void;
  /** One line for each kind of secret and output, of what was shown since the last call. */
  leaks(): readonly string[];
}

// A secret is searched for by non-overlapping pieces of its base64url text and one at its end: any shown part that is twice as long as a
// piece contains one of them. Shorter texts are searched for whole.
const pieceLength = 24;
// A text of only a few distinct characters is padding, not a secret.
const fewestCharacters = 8;

export function createSecretWatch(): SecretWatch {
  const kinds = new Map<string, SecretKind>();
  /** Of what was shown, only words long enough to be a secret are kept. */
  const shown = new Map<Output, Set<string>>();
  /** Output and word of what looks like a token: the JSON member that had it. */
  const members = new Map<string, string>();

  const mint = (kind: SecretKind, text: string): void => {
    for (const word of words(text)) {
      const pieces = [word.slice(-pieceLength)];
      for (let start = 0; start + pieceLength <= word.length; start += pieceLength) {
        pieces.push(word.slice(start, start + pieceLength));
      }
      for (const piece of pieces) if (new Set(piece).size >= fewestCharacters) kinds.set(piece, kind);
    }
  };
  return {
    mint,
    fresh(kind) {
      const text = randomBytes((pieceLength * 3) / 4).toString('base64url');
      mint(kind, text);
      return text;
    },
    show(output, text) {
      const known = shown.get(output) ?? new Set();
      shown.set(output, known);
      for (const word of words(text)) {
        known.add(word);
        if (isTokenLike(word)) members.set(`${output} ${word}`, memberBefore(word, text));
      }
    },
    leaks() {
      const found = new Set<string>();
      const lengths = new Set([...kinds.keys()].map(piece => piece.length));
      const search = (output: Output, word: string): void => {
        if (isTokenLike(word)) {
          const member = members.get(`${output} ${word}`) ?? 'encoded';
          found.add(`something like a token in: ${output} (${member}, ${word.length} characters)`);
        }
        for (const length of lengths) {
          for (let start = 0; start + length <= word.length; start += 1) {
            const kind = kinds.get(word.slice(start, start + length));
            if (kind === undefined || (kind === 'identity' && outputs[output])) continue;
            found.add(`${kind} in: ${output}`);
          }
        }
      };
      for (const [output, seen] of shown) {
        for (const word of seen) for (const each of [word, ...decoded(word)]) search(output, each);
      }
      shown.clear();
      return [...found].sort();
    },
  };
}

// The start of a JSON object in base64url: a token of any process, also one that was not minted here. Of random identifiers, one in 260,000
// begins with `eyJ`; their bytes are hardly ever printable.
function isTokenLike(word: string): boolean {
  return (
    /^eyJ[A-Za-z0-9_-]{21}/.test(word) &&
    /^[ -~]+$/.test(Buffer.from(word.slice(0, 24), 'base64url').toString('latin1'))
  );
}

/** The name of the JSON member, header or parameter whose value the word begins. A name as long as a secret is not repeated. */
function memberBefore(word: string, text: string): string {
  return /\b([\w-]{1,15})"?[:=]["\w ]*$/.exec(text.slice(0, text.indexOf(word)))?.[1] ?? 'no member';
}

// Base64 and base64url are treated as one alphabet. Dots separate the segments of a token.
function words(text: string): string[] {
  const found = [text, ...bytesIn(text)].join(' ').match(/[A-Za-z0-9_+/-]{16,}/g) ?? [];
  return found.map(word => word.replaceAll('+', '-').replaceAll('/', '_'));
}

/** The bytes as JSON shows them (decimal numbers) and as util.inspect does (hexadecimal). */
function bytesIn(text: string): string[] {
  const decimal = text.match(/\d{1,3}(?:,\s?\d{1,3}){15,}/g) ?? [];
  const hexadecimal = text.match(/[0-9a-f]{2}(?: ?[0-9a-f]{2}){15,}/g) ?? [];
  return [
    ...decimal.map(list => Buffer.from(list.split(',').map(Number))),
    ...hexadecimal.map(list => Buffer.from(list.replaceAll(' ', ''), 'hex')),
  ].map(bytes => bytes.toString('latin1'));
}

/** The payload as protobuf's JSON shows bytes fields, and its claims in base64url. */
function decoded(word: string): string[] {
  return words(Buffer.from(word, 'base64url').toString('latin1'));
}

/** The scan of this run. */
export const secrets = createSecretWatch();

let isWatching = false;

// A process that runs one file after the other (mocha --parallel) calls them for each.
export const mochaHooks = {
  beforeAll(): void {
    if (isWatching) return;
    isWatching = true;
    showFetched();
    for (const stream of [process.stdout, process.stderr]) showWritten(stream);
  },
  afterEach(this: Mocha.Context): void {
    secrets.show('test run', this.currentTest?.fullTitle() ?? '');
  },
  afterAll(): void {
    const leaks = secrets.leaks();
    if (leaks.length > 0) throw new Error(`secrets were shown:\n${leaks.join('\n')}`);
  },
};

// Tests use fetch for the product and for Envoy's admin only; issuers and upstreams, whose answers may contain secrets, have other clients.
function showFetched(): void {
  const { fetch } = globalThis;
  globalThis.fetch = async (...request) => {
    const answer = await fetch(...request);
    secrets.show('HTTP answer', JSON.stringify([...answer.headers]));
    secrets.show('HTTP answer', await answer.clone().text());
    return answer;
  };
}

// The product also runs in this process, and Node and its libraries write warnings by themselves.
function showWritten(stream: NodeJS.WriteStream): void {
  const write = stream.write.bind(stream);
  stream.write = ((...written: Parameters<typeof write>) => {
    secrets.show('test run', String(written[0]));
    return write(...written);
  }) as typeof write;
}
