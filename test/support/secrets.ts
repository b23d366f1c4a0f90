// What no log, metric, error body or trace may hold, and all that the tests saw of those: a root hook of mocha searches the one for
// the other when everything has run. It tells what kind of secret was found where, and never the secret.

export type SecretKind = 'token' | 'private key' | 'claim';

export interface SecretWatch {
  /** A text of which no part of 47 characters may be shown: a token, or a member of a private key. */
  mint(kind: SecretKind, text: string): void;
  /** A text that was shown, and by what: "service log". */
  show(place: string, text: string): void;
  /** How much was minted and shown, so that an empty search is noticed. */
  counts(): { readonly secrets: number; readonly words: number };
  /** One line for each kind and place. */
  leaks(): readonly string[];
}

// A secret is known by pieces of its base64url text, one after the other and one at its end: whatever part of it of twice the length is
// shown holds one of them. Shorter texts are known whole.
const pieceLength = 24;
const shortestSecret = 16;
// What is made of a few characters only is a filling, and no secret.
const fewestCharacters = 8;
// The beginning of a JSON object in base64url: a token of whatever process, also one that nobody minted here.
const tokenLike = /^eyJ[A-Za-z0-9_-]{21}/;

export function createSecretWatch(): SecretWatch {
  const kinds = new Map<string, SecretKind>();
  /** Only what is long enough to be a secret is kept of what was shown. */
  const places = new Map<string, string>();

  return {
    mint(kind, text) {
      for (const word of words(text)) {
        const pieces = [word.slice(-pieceLength)];
        for (let start = 0; start + pieceLength <= word.length; start += pieceLength) {
          pieces.push(word.slice(start, start + pieceLength));
        }
        for (const piece of pieces) if (new Set(piece).size >= fewestCharacters) kinds.set(piece, kind);
      }
    },
    show(place, text) {
      for (const word of words(text)) if (!places.has(word)) places.set(word, place);
    },
    counts: () => ({ secrets: kinds.size, words: places.size }),
    leaks() {
      const found = new Set<string>();
      const lengths = new Set([...kinds.keys()].map(piece => piece.length));
      for (const [word, place] of places) {
        if (tokenLike.test(word)) found.add(`something like a token in: ${place}`);
        for (const length of lengths) {
          for (let start = 0; start + length <= word.length; start += 1) {
            const kind = kinds.get(word.slice(start, start + length));
            if (kind !== undefined) found.add(`a ${kind} in: ${place}`);
          }
        }
      }
      return [...found].sort();
    },
  };
}

// Base64 and base64url are one alphabet here. A dot parts the segments of a token.
function words(text: string): string[] {
  const found =
    text
      .replaceAll('+', '-')
      .replaceAll('/', '_')
      .match(/[A-Za-z0-9_-]+/g) ?? [];
  return found.filter(word => word.length >= shortestSecret);
}

/** That of this run. */
export const secrets = createSecretWatch();

export const mochaHooks = {
  afterAll(): void {
    const leaks = secrets.leaks();
    if (leaks.length > 0) throw new Error(`secrets were shown:\n${leaks.join('\n')}`);
  },
};
