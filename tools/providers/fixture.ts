// The fixtures of a provider: header and claims of real tokens, without their signatures.
import { readFileSync, writeFileSync } from 'node:fs';
import { type DecodedToken, decodeToken } from './oauth.ts';

export interface ProviderFixture {
  /** The token of a user, from the authorization code grant. */
  readonly user: DecodedToken;
  /** The token of a service, from the client credentials grant. */
  readonly service: DecodedToken;
}

const placeOf = (name: string): URL => new URL(`../../test/fixtures/tokens/${name}.json`, import.meta.url);

export function readFixture(name: string): ProviderFixture {
  return JSON.parse(readFileSync(placeOf(name), 'utf8'));
}

/** The fixture has the addresses of the page; `addresses` maps them to those of the run. */
export function writeFixture(
  name: string,
  tokens: Readonly<Record<keyof ProviderFixture, string>>,
  addresses: ReadonlyMap<string, string>,
): void {
  const decoded = { user: decodeToken(tokens.user), service: decodeToken(tokens.service) };
  const text = [...addresses].reduce(
    (result, [page, run]) => result.replaceAll(run, page),
    JSON.stringify(decoded, null, 2),
  );
  writeFileSync(placeOf(name), `${text}\n`);
}

/** The differences in shape: members that only one of the tokens has, or that differ in type. */
export function shapeDifferences(token: DecodedToken, fixture: DecodedToken): readonly string[] {
  const [now, then] = [shape(token), shape(fixture)];
  return [...[...now].filter(each => !then.has(each)), ...[...then].filter(each => !now.has(each))];
}

function shape(value: unknown, path = ''): ReadonlySet<string> {
  if (Array.isArray(value)) return new Set(value.map(item => `${path}[]: ${typeof item}`));
  if (typeof value !== 'object' || value === null) return new Set([`${path}: ${typeof value}`]);
  return new Set(Object.entries(value).flatMap(([name, member]) => [...shape(member, `${path}/${name}`)]));
}
