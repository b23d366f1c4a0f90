// The table that `npm run fleet` prints, and the page that it writes.
import { type Cell, cell, type Table, toMarkdown } from '../../bench/report/table.ts';
import { latencyMs } from './instance.ts';
import type { Outcome, Scenario } from './run.ts';

export interface Result {
  readonly scenario: Scenario;
  readonly outcome: Outcome;
}

export function isMet({ scenario, outcome }: Result): boolean {
  return scenario.bars.every(bar => bar.isMet(outcome));
}

export function fleetTable(results: readonly Result[]): Table {
  const right = (head: string) => ({ head, align: 'right' }) as const;
  return {
    columns: [
      { head: 'scenario', align: 'left' },
      right('fetches/s: mean'),
      right('peak'),
      right('after 1 min'),
      right('usable p50 (s)'),
      right('p99 (s)'),
      right('max (s)'),
      right('good: 401'),
      right('good: 503'),
      { head: 'bar', align: 'left' },
      { head: 'met', align: 'left' },
    ],
    rows: results.map(({ scenario, outcome }) => {
      const { mean, peak, afterFirstMinute, good, usableSeconds } = outcome;
      const all = good.allowed + good.invalid + good.unavailable;
      const met = isMet({ scenario, outcome });
      return [
        cell(scenario.name),
        cell(mean.toFixed(1)),
        cell(peak),
        cell(afterFirstMinute.toFixed(1)),
        ...[0.5, 0.99, 1].map(share => seconds(usableSeconds(share))),
        cell(percent(good.invalid / all)),
        cell(percent(good.unavailable / all)),
        cell(scenario.bars.map(({ text }) => text).join('; ')),
        cell(met ? 'yes' : 'NO', met ? 'good' : 'bad'),
      ];
    }),
  };
}

export function fleetPage(
  results: readonly Result[],
  options: { readonly instances: number; readonly seed: number },
): string {
  const instances = options.instances.toLocaleString('en');
  return `<!-- Made by \`npm run fleet\`; not edited by hand. -->

# A fleet and its authentication service

What ${instances} instances ask of the authentication service, and what the holders of good tokens notice. It is a simulation in virtual time: each
instance is the product's own state machine of a key set (\`src/keys/key-set-machine.ts\`) with the defaults of the configuration and one issuer. How the keys
work: [keys.md](../keys.md).

- \`npm run fleet\` runs it again, in less than a minute; \`-- --instances N --seed S\` changes the fleet. The seed of this page is ${options.seed}.
- An answer of the authentication service takes ${latencyMs.min} to ${latencyMs.max} ms, and so does a refused connection. It answers everybody: a service that
  breaks down under a peak is not simulated, so the peaks are to be read as what it must bear.
- Each instance that is ready gets good tokens at a steady rate: one a second, five a second in *hard rotation under load*. No instance has a seed.

${toMarkdown(fleetTable(results))}

- *Fetches/s* are those of the whole fleet from the event on: the mean, the highest second, and the mean without the first minute.
- *Usable* is the time from the return or the rotation, or from the start of the instance, until it allows good tokens.
- *Good: 401* and *good: 503* are the shares of good tokens that were refused. In the two rotations, a token is good if the new key signed it, and the tokens of the
  first minute count. Over a longer window the share is smaller.

![Fetches per second in each scenario](fleet.svg)

| scenario | what happens |
| :-- | :-- |
${results.map(({ scenario: { name, what } }) => `| ${name} | ${what} |`).join('\n')}

## What the authentication service must bear

- **A peak of one fetch per instance.** Where something happens to every instance within one second (a start of the whole fleet, a hard rotation, unknown kids
  everywhere), each fetches once within about a second: an unknown kid is looked up at once. In an attack a second peak of the same height follows after
  \`cooldownSeconds\`, then the jitter spreads the fetches. These are requests for one public document: a cache before \`jwks.json\` that holds it for a second takes both.
- **During an outage** an instance without a usable set tries again every 5 to 15 seconds, and one with a set backs off up to \`refreshSeconds\`. After the return the load falls to that of the steady state within 15 seconds.
- **During an attack** each instance fetches every 48 to 60 seconds. These fetches confirm the set, so there are no background refreshes beside them.
- Formula of the steady state: instances × sources ÷ (0.9 × \`refreshSeconds\`) fetches per second; of an attack: instances × sources ÷ 54. Issuers with the same source
  count once ([keys.md](../keys.md)).
`;
}

function seconds(value: number): Cell {
  return cell(Number.isFinite(value) ? value.toFixed(1) : '–');
}

function percent(share: number): string {
  return share === 0 ? '0' : `${(share * 100).toPrecision(2)} %`;
}
