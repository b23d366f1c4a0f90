// `npm run demo`: starts everything, tells the story, and exits with 0 only if every step went as expected.
// `-- --stay` keeps everything up afterwards and prints requests to paste.
import { constants } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type Stage, startStage } from './stage.ts';
import { story, type Tokens } from './story.ts';
import { lineOf, messageOf, terminalFor } from './telling.ts';
import type { StepLine, Terminal } from './terminal.ts';

const { values: options } = parseArgs({ options: { stay: { type: 'boolean', default: false } } });

const patienceSeconds = 3;

interface End {
  readonly kind: 'told' | 'signalled';
  readonly exitCode: number;
}

// Later signals change nothing: everything is being ended already.
const signalled = new Promise<End>(resolve => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => resolve({ kind: 'signalled', exitCode: 128 + constants.signals[signal] }));
  }
});
const tokens: Tokens = { session: '', refresh: '', owner: '', member: '', backend: '' };
let starting: Promise<Stage> | undefined;
let stage: Stage | undefined;

const end = await tell();
if (options.stay && end.kind === 'told' && stage !== undefined) {
  invite(stage, terminalFor([]));
  await signalled;
}
// A stage that a signal has overtaken while it was starting is not waited for at any length: its processes end with this one.
const ended = starting?.then(each => each.stop()).catch(() => undefined);
const patience = delay(patienceSeconds * 1000, undefined, { ref: false });
await (stage === undefined ? Promise.race([ended, patience]) : ended);
process.exitCode = end.exitCode;
// What still tidies up has a moment more; a step that a signal has interrupted could go on for longer than that.
setTimeout(() => process.exit(), 1000).unref();

async function tell(): Promise<End> {
  const opening = terminalFor([]);
  opening.title('account-authz beside a real Envoy');
  opening.text('Everything runs on this machine, on 127.0.0.1, and ends with this command.');
  opening.text('');
  try {
    starting = startStage(opening);
    const started = await Promise.race([starting, signalled]);
    if ('exitCode' in started) return started;
    stage = started;
  } catch (error) {
    opening.verdict(`The demo could not start: ${messageOf(error)}`, false);
    return { kind: 'told', exitCode: 1 };
  }
  const chapters = story(stage, tokens);
  const terminal = terminalFor(chapters);
  terminal.heads();
  const lines: StepLine[] = [];
  for (const [index, { title, steps }] of chapters.entries()) {
    terminal.title(`${index + 1}  ${title}`);
    for (const step of steps) {
      const line = await Promise.race([lineOf(step), signalled]);
      if ('exitCode' in line) return line;
      lines.push(line);
      terminal.step(line);
    }
  }
  const failed = lines.filter(line => !line.ok);
  terminal.verdict(`${lines.length - failed.length} of ${lines.length} steps as expected`, failed.length === 0);
  for (const line of failed) terminal.step(line);
  return { kind: 'told', exitCode: failed.length === 0 ? 0 : 1 };
}

/** Requests to paste, with real tokens: on a terminal only, where no log keeps them. */
function invite({ gateway, authentication }: Stage, terminal: Terminal): void {
  const { issuer } = authentication;
  const subscriptions = `${gateway}/api/subscriptions`;
  terminal.title('Everything stays up until Ctrl-C');
  if (process.stdout.isTTY !== true) {
    terminal.text('Tokens are shown on a terminal only.');
    return;
  }
  const invitations: readonly (readonly [what: string, token: string, rest: string])[] = [
    ['alice of acme, its owner: allowed', tokens.owner, subscriptions],
    ['the same, on the pages of globex: refused', tokens.owner, `${subscriptions}/accounts/globex`],
    ['alice of globex, a member: may read', tokens.member, subscriptions],
    ['and may not delete', tokens.member, `-X DELETE ${subscriptions}/42`],
    ['her session, for more tokens', tokens.session, `-X POST ${issuer}/api/accounts/globex/token`],
  ];
  for (const [what, token, rest] of invitations) {
    terminal.text('');
    terminal.text(`# ${what}`);
    terminal.text(`curl -i -H 'Authorization: Bearer ${token}' ${rest}`);
  }
}
