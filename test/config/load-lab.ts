// A configuration file that is loaded, and its problems.
import { writeFixture } from '../../lab/config-file.ts';
import { loadConfig } from '../../src/config/load.ts';

/** `line:column place` of each problem of this text. */
export async function positionsOf(text: string): Promise<readonly string[]> {
  const loaded = await loadConfig(writeFixture('config.yaml', text));
  return loaded.kind === 'config' ? [] : loaded.problems.map(({ line, column, place }) => `${line}:${column} ${place}`);
}

export const good = `issuers:
  - issuer: https://auth.example.com
    audiences: [https://api.example.com]
    jwksUrl: https://auth.example.com/jwks
routes:
  - path: /api/*
roles:
  owner: ['*']
`;
