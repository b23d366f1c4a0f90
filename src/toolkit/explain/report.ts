// Renders an explanation as text: a line for each check, then the answer. Colour adds no information.
import type { KeyRingStatus } from '../../keys/key-ring.ts';
import { printable } from '../../text/printable.ts';
import type { Explanation } from './explanation.ts';
import { keyAge } from './known.ts';
import type { LiveExplanation } from './live-check.ts';

type Paint = (style: keyof typeof styles, text: string) => string;

// ECMA-48 section 8.3.117.
const styles = {
  pass: '32',
  fail: '31',
  'not reached': '2',
  allow: '1;32',
  deny: '1;31',
  unavailable: '1;33',
  label: '2',
};

/** An issuer may have 1024 characters. */
const maxValueLength = 2048;

export function createPaint(isColoured: boolean): Paint {
  return isColoured ? (style, text) => `\u001b[${styles[style]}m${text}\u001b[0m` : (_, text) => text;
}

/** FORCE_COLOR decides, then NO_COLOR (no-color.org), then whether the terminal supports colour. FORCE_COLOR=0 turns it off. */
export function wantsColour(env: Readonly<Record<string, string | undefined>>, isTerminal: boolean): boolean {
  const { NO_COLOR: no = '', FORCE_COLOR: force = '', TERM: term } = env;
  if (force !== '') return force !== '0' && force !== 'false';
  return no === '' && isTerminal && term !== 'dumb';
}

export function reportLive({ explanation, removed, keys }: LiveExplanation, paint: Paint): string {
  const { forwarded = {} } = explanation;
  const notForwarded = Object.keys(forwarded).filter(name => !forwarded[name]);
  const label = explanation.decision === 'allow' ? 'the upstream gets' : 'the client gets';
  return [
    checkLines(explanation, paint),
    `\n${keys.map(ring => keyLine(ring, paint)).join('')}`,
    `\n${answerLine(explanation, paint)}`,
    headerLines(explanation, paint, label),
    ...[...notForwarded, ...removed.filter(name => name === 'authorization')].map(
      name => `  ${paint('label', 'it does not get')}  ${name}\n`,
    ),
  ].join('');
}

function checkLines({ checks }: Explanation, paint: Paint): string {
  return checks
    .map(({ name, verdict, detail }) => {
      const row = `${verdict.padEnd(13)}${name.padEnd(16)}`;
      return detail === '' ? `${paint(verdict, row.trimEnd())}\n` : `${paint(verdict, row)}${detail}\n`;
    })
    .join('');
}

function keyLine(ring: KeyRingStatus, paint: Paint): string {
  const state = `${ring.keys} ${ring.keys === 1 ? 'key' : 'keys'} in use, ${keyAge(ring)}`;
  // After a failed first refresh, keys can only come from a seed.
  const origin = ring.keys > 0 && ring.lastResult === 'failure' ? '; these are from keys.cacheDirectory' : '';
  return `${paint('label', 'keys of')} ${printable(`${ring.issuer}: ${state}${origin}`, maxValueLength)}\n`;
}

function answerLine({ decision, status, reason }: Explanation, paint: Paint): string {
  return `${paint(decision, `${decision}: ${status} ${reason}`)}\n`;
}

function headerLines({ headers, forwarded = {} }: Explanation, paint: Paint, label: string): string {
  const hidden = Object.entries(forwarded).flatMap(([name, isSent]) =>
    isSent ? [[name, '(not shown)'] as const] : [],
  );
  return [...Object.entries(headers), ...hidden]
    .map(([name, value]) => `  ${paint('label', label)}  ${name}: ${printable(value, maxValueLength)}\n`)
    .join('');
}
