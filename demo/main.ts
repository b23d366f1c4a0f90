// `npm run demo`: starts all parts, runs the steps of the demo, and exits with 0 only if every step is as expected.
// `-- --stay` keeps the parts running afterwards and prints requests to paste.
import { constants } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type LocalDemo, startLocalDemo } from './local-demo.ts';
import { messageOf, runSections } from './run-sections.ts';
import { Tokens } from './steps/scene.ts';
import { sectionsOf } from './steps/sections.ts';
import { createTerminal } from './terminal.ts';

const { values: options } = parseArgs({ options: { stay: { type: 'boolean', default: false } } });

const stopSeconds = 3;

// A second signal changes nothing: the demo already stops.
const interrupted = new Promise<number>(resolve => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => resolve(128 + constants.signals[signal]));
  }
});
const terminal = createTerminal();
const tokens = new Tokens();
let starting: Promise<LocalDemo> | undefined;
let demo: LocalDemo | undefined;

const exitCode = await run();
const isInterrupted = exitCode > 128;
if (options.stay && !isInterrupted && demo !== undefined) {
  printRequests(demo);
  await interrupted;
}
// If a signal came during the start, the wait for it is short: the child processes end with this one.
const stopped = starting?.then(each => each.stop()).catch(() => undefined);
const timedOut = delay(stopSeconds * 1000, undefined, { ref: false });
await (demo === undefined ? Promise.race([stopped, timedOut]) : stopped);
process.exitCode = exitCode;
// A step that a signal interrupted may keep the process alive for longer.
setTimeout(() => process.exit(), 1000).unref();

async function run(): Promise<number> {
  terminal.title('account-authz beside a real Envoy');
  terminal.text('Everything runs on this machine, on 127.0.0.1, and ends with this command.');
  terminal.text('');
  try {
    starting = startLocalDemo(terminal);
    const started = await Promise.race([starting, interrupted]);
    if (typeof started === 'number') return started;
    demo = started;
  } catch (error) {
    terminal.verdict(`The demo could not start: ${messageOf(error)}`, false);
    return 1;
  }
  return runSections(sectionsOf(demo, tokens), interrupted);
}

/** Prints requests with real tokens; on a terminal only, because a log would store the tokens. */
function printRequests({ gateway, authentication }: LocalDemo): void {
  const { issuer } = authentication;
  const subscriptions = `${gateway}/api/subscriptions`;
  terminal.title('Everything stays up until Ctrl-C');
  if (process.stdout.isTTY !== true) {
    terminal.text('Tokens are shown on a terminal only.');
    return;
  }
  const requests: readonly (readonly [comment: string, token: string, rest: string])[] = [
    ['alice of acme, its owner: allowed', tokens.owner, subscriptions],
    ['the same, for account globex: refused', tokens.owner, `${subscriptions}/accounts/globex`],
    ['alice of globex, a member: may read', tokens.member, subscriptions],
    ['and may not delete', tokens.member, `-X DELETE ${subscriptions}/42`],
    ['her session, for more tokens', tokens.session, `-X POST ${issuer}/api/accounts/globex/token`],
  ];
  for (const [comment, token, rest] of requests) {
    terminal.text('');
    terminal.text(`# ${comment}`);
    terminal.text(`curl -i -H 'Authorization: Bearer ${token}' ${rest}`);
  }
}
