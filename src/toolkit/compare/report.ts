// Prints a comparison for people, and as tables for a pull request.
import { printable, replaceUnprintable, toYamlEscape } from '../../text/printable.ts';
import type { Comparison } from './comparison.ts';
import { kinds, listOf, methodsText, type Row, scopeText, someOf, toText, valueText } from './row.ts';

const maxTextLength = 4096;

export function toReport(comparison: Comparison): string {
  const rows = kinds.flatMap(kind => comparison[kind]);
  const lines = rows.flatMap(row => {
    const { example } = row;
    const line = printable(toText(row), maxTextLength);
    if (example === undefined) return [line];
    const { claims, request } = example;
    return [line, `    ${printable(JSON.stringify({ claims, request }), maxTextLength)}`];
  });
  return [...lines, summary(comparison), ...incomplete(comparison)].map(line => `${line}\n`).join('');
}

export function toJson(comparison: Comparison): string {
  const lines = JSON.stringify(comparison, undefined, 2).split('\n');
  // An escape of JSON has four digits: two of them for a character beyond.
  return lines.map(line => `${replaceUnprintable(line, each => each.split('').map(toYamlEscape).join(''))}\n`).join('');
}

/** What GitHub takes as a comment is 65,536 characters long. */
const maxMarkdown = 60_000;

const titles: Readonly<Record<Row['kind'], string>> = {
  more: 'Allows more',
  less: 'Allows less',
  other: 'Answers otherwise',
  unordered: 'Cannot be ordered: counts as more',
};

export function toMarkdown(comparison: Comparison): string {
  const head = ['### What this change of the policy allows', '', summary(comparison), ...incomplete(comparison)].join(
    '\n',
  );
  const foot = (cut: number): string =>
    cut === 0
      ? '\n'
      : `\n\n${cut} more ${cut === 1 ? 'row is' : 'rows are'} not shown: \`account-authz compare\` prints all.\n`;
  let text = head;
  let cut = 0;
  for (const kind of kinds) {
    const rows = comparison[kind];
    const title = `\n\n**${titles[kind]}**\n\n| who | methods | path or setting | before | after |\n|---|---|---|---|---|`;
    let table = '';
    for (const row of rows) {
      const line = `\n${markdownRow(row)}`;
      const isFull =
        cut > 0 ||
        text.length + title.length + table.length + line.length + foot(rows.length).length + 100 > maxMarkdown;
      if (isFull) cut += 1;
      else table += line;
    }
    if (table !== '') text += `${title}${table}`;
  }
  return `${text}${foot(cut)}`;
}

function markdownRow({ role, scope, methods, path, except, when, setting, entry, before, after }: Row): string {
  const who = [role && `role ${listOf(role)}`, scope && scopeText(scope)].filter(part => part !== undefined).join(', ');
  const what = [setting, entry && listOf(entry), path].filter(part => part !== undefined).map(code);
  const cells = [
    escaped(who),
    methods === undefined ? '' : escaped(methodsText(methods)),
    [...what, except && `except ${someOf(except).map(code).join(', ')}`, when && escaped(when)]
      .filter(part => part !== undefined)
      .join(' '),
    code(valueText(before)),
    code(valueText(after)),
  ];
  return `| ${cells.join(' | ')} |`;
}

// Nothing of a configuration ends a cell, a code span or the comment.
function code(text: string): string {
  return `\`${printable(text, maxTextLength).replaceAll('`', "'").replaceAll('|', '\\|')}\``;
}

function escaped(text: string): string {
  return printable(text, maxTextLength).replaceAll(/[\\`*_{}[\]<>()#+!|~@&]/g, sign => `\\${sign}`);
}

function summary(comparison: Comparison): string {
  if (kinds.every(kind => comparison[kind].length === 0)) return 'No difference.';
  return kinds.map(kind => `${comparison[kind].length} ${kind}`).join(', ');
}

function incomplete({ leftOut }: Comparison): readonly string[] {
  return leftOut === undefined ? [] : [`INCOMPLETE: ${printable(leftOut, maxTextLength)} was not compared`];
}
