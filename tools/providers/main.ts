// `npm run providers`: a real Keycloak and a real Hydra on loopback, their tokens through a real Envoy and the built product. Prints a
// table; exits with 1 if a row is not as expected. Downloads once, into .cache/providers; takes some minutes. `--only keycloak` or
// `--only hydra` tries one of them; `--capture` rewrites the fixtures.
import { parseArgs } from 'node:util';
import { MissingProgram, requirePrograms } from './distributions.ts';
import { createHydra } from './hydra.ts';
import { createKeycloak } from './keycloak.ts';
import { keyTimes } from './lab.ts';
import type { Provider } from './provider.ts';
import { columns } from './table.ts';
import { type Row, tryProvider } from './trial.ts';

const creators = { keycloak: createKeycloak, hydra: createHydra } as const;

const { values: options } = parseArgs({
  options: { only: { type: 'string' }, capture: { type: 'boolean', default: false } },
});
const chosen = Object.entries(creators).filter(([name]) => options.only === undefined || options.only === name);

const startedAt = performance.now();
const say = (text: string): void => {
  process.stdout.write(`${((performance.now() - startedAt) / 1000).toFixed(1).padStart(6)} s  ${text}\n`);
};
// Listeners of `exit` kill the processes that were started.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));

const table = (rows: readonly Row[]): string =>
  columns(
    ['provider', 'grant', 'case', 'expected', 'got', 'ok'],
    rows.map(row => [row.provider, row.grant, row.case, row.expected, row.got, row.ok ? 'ok' : 'NOT OK']),
  );

const rows: Row[] = [];
const providers: Provider[] = [];
try {
  if (chosen.length === 0)
    throw new MissingProgram(`--only takes ${Object.keys(creators).join(' or ')}, not ${options.only}`);
  await requirePrograms('bash', 'curl', 'jq');
  for (const [name, create] of chosen) providers.push(await create(text => say(`${name}: ${text}`)));
  for (const provider of providers) {
    rows.push(...(await tryProvider(provider, text => say(`${provider.id}: ${text}`), options.capture)));
    await provider.close();
  }
  const failed = rows.filter(({ ok }) => !ok).length;
  const times = Object.entries(keyTimes).map(([name, seconds]) => `${name} ${seconds}`);
  process.stdout.write(
    `\n${table(rows)}\n\nkeys: ${times.join(', ')}\n\n${rows.length - failed} passed, ${failed} failed\n`,
  );
  process.exitCode = failed === 0 ? 0 : 1;
} catch (error) {
  const text = error instanceof MissingProgram ? error.message : error instanceof Error ? error.stack : String(error);
  process.stderr.write(`npm run providers: ${text}\n`);
  process.exitCode = 1;
} finally {
  for (const provider of providers) await provider.close();
}
