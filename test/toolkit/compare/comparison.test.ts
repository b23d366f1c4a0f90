// What `compare` says about single changes, and where it ends.
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { parse } from 'yaml';
import { configSchema } from '../../../src/config/schema.ts';
import { type Comparison, compareConfigs } from '../../../src/toolkit/compare/comparison.ts';
import { toMarkdown } from '../../../src/toolkit/compare/report.ts';
import { type Row, toText } from '../../../src/toolkit/compare/row.ts';
import { validateCompared } from '../../../src/toolkit/compare/settings.ts';

const { before, changes } = parse(readFileSync(new URL('changes.yaml', import.meta.url), 'utf8')) as {
  readonly before: string;
  readonly changes: readonly {
    readonly title: string;
    readonly was: string;
    readonly is: string;
    readonly rows: string[];
  }[];
};

async function load(text: string) {
  const content = { kind: 'bytes', bytes: Buffer.from(text) } as const;
  const loaded = await validateCompared(content);
  if (loaded.kind !== 'config') throw new Error(JSON.stringify(loaded.problems));
  return loaded;
}

const rowsOf = ({ more, less, other, unordered }: Comparison): readonly Row[] => [
  ...more,
  ...less,
  ...other,
  ...unordered,
];

/** Routes of this many segments, each with one literal at another place: every set of them is a class of paths. */
function tangled(depth: number, roles: readonly string[]) {
  const routes = Array.from({ length: depth }, (_, i) => ({
    path: `/${Array.from({ length: depth }, (__, j) => (i === j ? 'x' : ':id')).join('/')}`,
    accountInPath: false,
  }));
  const config = configSchema.parse({
    issuers: [{ issuer: 'https://a.test', audiences: ['api'], jwksUrl: 'https://a.test/jwks' }],
    routes,
    roles: Object.fromEntries(roles.map(role => [role, ['GET']])),
  });
  return { config, written: { config } };
}

describe('compare', () => {
  for (const { title, was, is, rows } of changes)
    it(`says what changes: ${title}`, async () => {
      expect(before).to.include(was);
      const comparison = compareConfigs([await load(before), await load(before.replace(was, () => is))]);
      expect(rowsOf(comparison).map(toText)).to.deep.equal(rows);
    });

  it('takes the parameter of the account by any name', async () => {
    const renamed = before
      .replaceAll(':account_id', ':accountId')
      .replace('account: {', 'account: { parameter: accountId,');
    const [old, now] = [await load(before), await load(renamed)];
    expect(rowsOf(compareConfigs([old, now]))).to.deep.equal([]);
    const { more } = compareConfigs([old, await load(renamed.replace('roles: [owner]', 'roles: [owner, admin]'))]);
    expect(more.map(({ path }) => path)).to.include('/v1/tenants/:accountId/billing/*');
  });

  it('compares lists where both permit nothing in common', async () => {
    const old = before
      .replace(/roles:\n(?: {2}.*\n)+(?=scopes)/, 'roles: { a: [GET] }\n')
      .replaceAll(/ {4}roles:.*\n/g, '');
    const now = old.replace('{ a: ', '{ b: ').replace('x-account-id', 'x-tenant-id').replace('[web]', '[web, cli]');
    const { more } = compareConfigs([await load(old), await load(now)]);
    const rows = ['more  account.headers  x-account-id → none', 'more  apps  none → cli'];
    expect(more.map(toText)).to.include.members(rows);
  });

  it('says the opposite the other way round', async () => {
    for (const { was, is } of changes) {
      const [old, now] = [await load(before), await load(before.replace(was, () => is))];
      const [there, back] = [compareConfigs([old, now]), compareConfigs([now, old])];
      expect([back.more.length, back.less.length]).to.deep.equal([there.less.length, there.more.length]);
    }
  });

  it('leaves out what takes too many questions, and names it', () => {
    const { complete, leftOut } = compareConfigs([tangled(9, ['a']), tangled(9, ['b'])], { limit: 1000 });
    expect({ complete, leftOut }).to.deep.equal({
      complete: false,
      leftOut: 'more than 1,000 questions: /x/x/x/:id/:id/:id/:id/x/:id and what follows it',
    });
  });

  it('cuts Markdown at 60,000 characters, with the count of what it cut, and ends no cell', async () => {
    const names = Array.from(
      { length: 150 },
      (_, i) => `  r${i}: { methods: [GET, 'POST /v1/${'a'.repeat(400)}${i}'], names: ["<b>|\`${i}"] }\n`,
    );
    const text = toMarkdown(
      compareConfigs([
        await load(before),
        await load(before.replace('roles:\n  owner', () => `roles:\n${names.join('')}  owner`)),
      ]),
    );
    expect(text.length).to.be.within(50_000, 60_000);
    expect(text)
      .to.match(/\n\d+ more rows are not shown/)
      .and.not.include('<b>');
    const cells = text
      .split('\n')
      .filter(line => line.startsWith('| '))
      .map(line => line.replaceAll('\\|', '').split('|').length);
    expect(new Set(cells)).to.deep.equal(new Set([7]));
  });
});
