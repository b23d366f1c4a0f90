// The parts of which the admin page is made: sections, pairs of name and value, lists of names, and tables of counts.
import { printable } from '../text/printable.ts';
import { formatCount, formatShare } from './admin-page-format.ts';
import { type Html, html } from './admin-page-html.ts';

const maxNames = 12;
const maxNameLength = 64;

export function section(look: string, heading: string, content: Html): Html {
  const [id = ''] = heading.toLowerCase().split(' ', 1);
  return html`<section class="${look}" aria-labelledby="${id}"><h2 id="${id}">${heading}</h2>${content}</section>`;
}

export function pairs(rows: Readonly<Record<string, Html | string>>): Html {
  return pairList(Object.entries(rows));
}

export function pairList(rows: readonly (readonly [name: string, value: Html | string])[]): Html {
  return html`<dl>${rows.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>\n`)}</dl>`;
}

export function codes(names: readonly string[]): Html {
  const shown = names.slice(0, maxNames).map(name => html`<code>${printable(name, maxNameLength)}</code> `);
  return html`${names.length === 0 ? 'none' : shown}${names.length > maxNames ? `and ${names.length - maxNames} more` : ''}`;
}

/** Counted checks, with a bar for the share of each row. */
export function countTable(
  head: string,
  rows: readonly { readonly name: Html | string; readonly count: number; readonly look: string }[],
): Html {
  const total = rows.reduce((sum, { count }) => sum + count, 0);
  const bar = (count: number, look: string): Html =>
    html`<svg role="img" aria-label="${formatShare(count, total)}"><rect class="${look}" width="${((count / total) * 100).toFixed(2)}%" height="100%"/></svg>`;
  return html`<table><thead><tr><th scope="col">${head}</th><th scope="col" class="number">Checks</th><th scope="col" class="share">Share</th></tr></thead>
<tbody>${rows.map(({ name, count, look }) => html`<tr class="${count === 0 ? 'muted' : ''}"><th scope="row">${name}</th><td class="number">${formatCount(count)}</td><td class="share">${count === 0 ? '' : bar(count, look)}</td></tr>\n`)}</tbody>
<tfoot><tr><th scope="row">All</th><td class="number">${formatCount(total)}</td><td class="share"></td></tr></tfoot></table>`;
}
