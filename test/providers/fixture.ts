// The tokens of a provider as its page and the tests have them: header and claims of real ones, without their signatures.
import { readFileSync, writeFileSync } from 'node:fs';
import { type DecodedToken, decodeToken } from './oauth.ts';

export interface ProviderFixture {
  /** Of a user, by the authorization code grant. */
  readonly user: DecodedToken;
  /** Of a service, by the client credentials grant. */
  readonly service: DecodedToken;
}

const placeOf = (name: string): URL => new URL(`../fixtures/tokens/${name}.json`, import.meta.url);

export function readFixture(name: string): ProviderFixture {
  return JSON.parse(readFileSync(placeOf(name), 'utf8'));
}

/** `addresses` leads from the page to the run; the fixture has the addresses of the page. */
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

/** Where the shape of a token is another one: members that only one has, or that hold another type. */
export function shapeDifferences(token: DecodedToken, fixture: DecodedToken): readonly string[] {
  const [now, then] = [shape(token), shape(fixture)];
  return [...[...now].filter(each => !then.has(each)), ...[...then].filter(each => !now.has(each))];
}

function shape(value: unknown, path = ''): ReadonlySet<string> {
  if (Array.isArray(value)) return new Set(value.map(item => `${path}[]: ${typeof item}`));
  if (typeof value !== 'object' || value === null) return new Set([`${path}: ${typeof value}`]);
  return new Set(Object.entries(value).flatMap(([name, member]) => [...shape(member, `${path}/${name}`)]));
}
