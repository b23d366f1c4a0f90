// `npm run providers`: a real Keycloak and a real Hydra on loopback, their tokens through a real Envoy and the built product; then small issuers.
// Prints a line a case; exits with 1 if one is not as expected. Needs bash, curl, jq, Java 17 and Maven, Go and a C
// compiler, Python; takes some minutes. `--only NAME` tries one of them; `--capture` rewrites the fixtures of Keycloak and Hydra.
import { parseArgs } from 'node:util';
import { createHydra } from './hydra.ts';
import { createKeycloak } from './keycloak.ts';
import { smallIssuers, trySmallIssuer } from './small-issuers.ts';
import { type Result, tryProvider } from './trial.ts';

const { values: options } = parseArgs({
  options: { only: { type: 'string' }, capture: { type: 'boolean', default: false } },
});
const creators = Object.entries({ keycloak: createKeycloak, hydra: createHydra });
const { only } = options;
const isChosen = ({ name, isSlow = false }: { readonly name: string; readonly isSlow?: boolean }): boolean =>
  only === undefined ? !isSlow : only === name;
const choices = [...creators.map(([name]) => ({ name })), ...smallIssuers];
if (!choices.some(isChosen)) throw new Error(`--only takes ${choices.map(({ name }) => name).join(', ')}, not ${only}`);
// Listeners of `exit` kill the processes that were started.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));

const counts = { passed: 0, failed: 0 };
const adder =
  (provider: string) =>
  (result: Result): void => {
    const { grant, name, expected, got } = result;
    const isGood = got === expected;
    counts[isGood ? 'passed' : 'failed'] += 1;
    const wanted = isGood ? '' : `, expected ${expected}`;
    process.stdout.write(`${isGood ? 'ok    ' : 'NOT OK'} ${provider}, ${grant}, ${name}: ${got}${wanted}\n`);
  };
for (const [name, create] of creators) {
  if (!isChosen({ name })) continue;
  const provider = await create();
  try {
    await tryProvider(provider, { add: adder(provider.name), captures: options.capture });
  } finally {
    await provider.close();
  }
}
for (const { name } of smallIssuers.filter(isChosen)) await trySmallIssuer(name, adder(name));
process.stdout.write(`${counts.passed} passed, ${counts.failed} failed\n`);
process.exitCode = counts.failed === 0 ? 0 : 1;
