// `npm run providers`: a real Keycloak and a real Hydra on loopback, their tokens through a real Envoy and the built product. Prints a line
// a case; exits with 1 if one is not as expected. Needs bash, curl, jq, Java 17 and Maven (Keycloak), Go and a C compiler (Hydra); takes some
// minutes. `--only keycloak` or `--only hydra` tries one of them; `--capture` rewrites the fixtures.
import { parseArgs } from 'node:util';
import { createHydra } from './hydra.ts';
import { createKeycloak } from './keycloak.ts';
import { type Result, tryProvider } from './trial.ts';

const { values: options } = parseArgs({
  options: { only: { type: 'string' }, capture: { type: 'boolean', default: false } },
});
const creators = Object.entries({ keycloak: createKeycloak, hydra: createHydra });
const chosen = creators.filter(([name]) => options.only === undefined || options.only === name);
if (chosen.length === 0) throw new Error(`--only takes keycloak or hydra, not ${options.only}`);
// Listeners of `exit` kill the processes that were started.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));

const counts = { passed: 0, failed: 0 };
for (const [, create] of chosen) {
  const provider = await create();
  const add = ({ grant, name, expected, got }: Result): void => {
    const isGood = got === expected;
    counts[isGood ? 'passed' : 'failed'] += 1;
    const wanted = isGood ? '' : `, expected ${expected}`;
    process.stdout.write(`${isGood ? 'ok    ' : 'NOT OK'} ${provider.name}, ${grant}, ${name}: ${got}${wanted}\n`);
  };
  try {
    await tryProvider(provider, { add, captures: options.capture });
  } finally {
    await provider.close();
  }
}
process.stdout.write(`${counts.passed} passed, ${counts.failed} failed\n`);
process.exitCode = counts.failed === 0 ? 0 : 1;
