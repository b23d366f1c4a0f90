// The security cases: their ids, inputs and required outcomes, read from cases.tsv.
import { readFileSync } from 'node:fs';

export interface SecurityCase {
  readonly id: string;
  readonly input: string;
  /** A: allow; D401, D503, …: a refusal with that status; gN: a gRPC status of the call itself. */
  readonly outcome: string;
}

/** Matches ids in text, but not the curves P-256, P-384 and P-521. */
const idPattern = /\b(?!P-(?:256|384|521)\b)[JCHOPRKGFL]-\d{3}\b/g;

export const sections: ReadonlyMap<string, string> = new Map([
  ['J', 'JWS structure, algorithms, keys in the header'],
  ['C', 'Claims'],
  ['H', 'Authorization header and place of the token'],
  ['O', 'Identity headers out, spoofing in'],
  ['P', 'Path and account'],
  ['R', 'Method, pseudo headers, shapes of requests'],
  ['K', 'JWKS and discovery'],
  ['G', 'Abuse of the gRPC server'],
  ['F', 'Contract of the response'],
  ['L', 'Logs, metrics, timing, configuration, supply chain'],
]);

export function securityCases(): readonly SecurityCase[] {
  const text = readFileSync(new URL('cases.tsv', import.meta.url), 'utf8');
  return text
    .trimEnd()
    .split('\n')
    .map(line => {
      const [id = '', input = '', outcome = ''] = line.split('\t');
      return { id, input, outcome };
    });
}

export function idsIn(text: string): readonly string[] {
  return [...new Set(text.match(idPattern) ?? [])];
}
