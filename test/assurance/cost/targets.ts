// Every function that reads untrusted bytes before a token is verified, alone and within a whole check, with known
// expensive inputs.

import { base64url, issuer, token } from '../../../lab/token.ts';
import { parseStrictJson } from '../../../src/json/strict-json.ts';
import { maxKeySetBytes, parseKeySet } from '../../../src/keys/jwks.ts';
import { parseDiscovery } from '../../../src/keys/key-source.ts';
import { parseCompactJws } from '../../../src/token/compact.ts';
import { inJson } from '../fuzz/shapes.ts';
import type { FuzzTarget } from '../fuzz/target.ts';
import { createParts, createTargets } from '../fuzz/targets.ts';
import { checkTargets } from './check-targets.ts';
import {
  atFullLength,
  type CostTarget,
  fragments,
  inDocument,
  jsonTexts,
  maxTokenBytes,
  maxTokenJsonBytes,
  texts,
} from './cost-target.ts';
import { type Pattern, unrepeated } from './pattern.ts';
import { createQuietCheck, type QuietCheck } from './quiet-check.ts';
import { requestTargets } from './request-targets.ts';

export async function createCostTargets(): Promise<{
  readonly check: QuietCheck;
  readonly targets: readonly CostTarget[];
}> {
  const { engine } = await createParts();
  const check = createQuietCheck(engine);
  const fuzzed = new Map((await createTargets()).map(target => [target.name, target]));
  const targets = [
    ...requestTargets(),
    ...tokenTargets(fuzzed),
    ...checkTargets(check, await token(), fuzzed),
    ...documentTargets(fuzzed),
  ];
  return { check, targets };
}

function tokenTargets(fuzzed: ReadonlyMap<string, FuzzTarget>): CostTarget[] {
  const header = base64url('{"alg":"ES256","kid":"k1"}');
  const payload = base64url(JSON.stringify({ iss: issuer }));
  const known = atFullLength(maxTokenJsonBytes, jsonTexts);
  const json = { ...texts, shapes: [inJson], maxBytes: maxTokenJsonBytes, known };
  return [
    {
      ...texts,
      name: 'compact-jws',
      maxBytes: maxTokenBytes,
      fragments: [...fragments, ...(fuzzed.get('compact-jws')?.dictionary ?? [])],
      known: atFullLength(maxTokenBytes, [
        ['', 'a'],
        ['', 'a.'],
        ['a.b.', 'A'],
        [`${header}.${payload}.`, 'A'],
        [`${header}.`, 'A', '.AAAA'],
        ['', '.'],
      ]),
      load: input => () => parseCompactJws(input.toString()),
    },
    {
      ...json,
      name: 'token-header',
      load(input) {
        const text = `${input.toString('base64url')}.${payload}.AAAA`;
        return () => parseCompactJws(text);
      },
    },
    {
      ...json,
      name: 'token-payload',
      load(input) {
        const text = `${header}.${input.toString('base64url')}.AAAA`;
        return () => parseCompactJws(text);
      },
    },
    { ...json, name: 'strict-json', load: input => () => parseStrictJson(input) },
  ];
}

function documentTargets(fuzzed: ReadonlyMap<string, FuzzTarget>): CostTarget[] {
  const seedsOf = (name: string): Pattern[] => (fuzzed.get(name)?.seeds ?? []).map(unrepeated);
  const dictionaryOf = (name: string): Buffer[] => [...fragments, ...(fuzzed.get(name)?.dictionary ?? [])];
  const document = { ...inDocument, shapes: [inJson] } as const;
  return [
    {
      ...document,
      name: 'key-set',
      maxBytes: maxKeySetBytes,
      fragments: dictionaryOf('jwks'),
      known: [
        ...seedsOf('jwks'),
        ...atFullLength(maxKeySetBytes, [
          ...jsonTexts,
          ['{"keys":[', '{"kty":"RSA","kid":"{n}"},', '{}]}'],
          ['{"keys":[{"kty":"EC","kid":"k","key_ops":[', '"a",', '"a"]}]}'],
        ]),
      ],
      load: input => () => parseKeySet(input, ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA']),
    },
    {
      ...document,
      name: 'discovery',
      maxBytes: maxKeySetBytes,
      fragments: dictionaryOf('discovery'),
      known: [
        ...seedsOf('discovery'),
        ...atFullLength(maxKeySetBytes, [
          ...jsonTexts,
          [`{"issuer":"${issuer}","jwks_uri":"https://`, 'a.', '"}'],
          [`{"issuer":"${issuer}","jwks_uri":"https://idp.test/`, '../../', '"}'],
        ]),
      ],
      load: input => () => parseDiscovery(input, 'https://idp.test/.well-known/openid-configuration', issuer),
    },
  ];
}
