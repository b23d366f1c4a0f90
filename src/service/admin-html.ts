// HTML by template literal, its style, light and dark, and the content security policy that allows this style and nothing else.
import { hash } from 'node:crypto';
import { printable } from '../text/printable.ts';

export interface Html {
  readonly markup: string;
}

type HtmlPart = Html | string | number | readonly HtmlPart[];

/** Every text put into it is escaped, so only markup written in our own source is markup. */
export function html(literals: TemplateStringsArray, ...parts: readonly HtmlPart[]): Html {
  return { markup: String.raw({ raw: literals }, ...parts.map(toMarkup)) };
}

function toMarkup(part: HtmlPart): string {
  if (typeof part === 'object') return 'markup' in part ? part.markup : part.map(toMarkup).join('');
  return String(part).replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`);
}

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

const css = `
:root {
  color-scheme: light dark;
  --page: light-dark(#f5f6f8, #12161b); --card: light-dark(#fff, #1a2027); --line: light-dark(#dde2e8, #2e3741);
  --text: light-dark(#1b2430, #e3e8ed); --muted: light-dark(#55606e, #a2adb9); --link: light-dark(#0b5cad, #7db7f5);
  --good: light-dark(#1f7a57, #46b587); --trouble: light-dark(#b3470e, #ee8f56);
}
* { box-sizing: border-box; }
body { max-width: 68rem; margin: 0 auto; padding: 1.5rem 1rem; background: var(--page); color: var(--text); }
body { font: 94%/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1, h2, h3, p, ul, dl, dd { margin: 0; }
h1 { font-size: 1.5rem; }
h2 { margin-bottom: .75rem; font-size: 1.05rem; }
h3 { margin-bottom: .5rem; font-size: .95rem; }
a { color: var(--link); }
code { font: .9em ui-monospace, monospace; }
main, .issuers { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 25rem), 1fr)); gap: 1rem; }
main { margin: 1rem 0; }
section { min-width: 0; padding: 1rem; background: var(--card); border: 1px solid var(--line); border-radius: .6rem; }
.wide { grid-column: 1 / -1; }
.good, .bad { color: var(--good); font-weight: 600; }
.bad { color: var(--trouble); }
.alarm { border-color: var(--trouble); border-left-width: .4rem; }
.alarm h2 { color: var(--trouble); }
.alarm li { margin-bottom: .4rem; }
header p, .muted, .muted > *, dt, thead th { color: var(--muted); }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .4rem .75rem; }
ul { padding-left: 1.1rem; }
ul:empty { display: none; }
dd code { margin-right: .5rem; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
th, td { padding: .3rem .5rem .3rem 0; border-bottom: 1px solid var(--line); text-align: left; font-weight: 400; }
tfoot > tr > * { font-weight: 600; }
main .routes td, main .routes code, main th code { overflow-wrap: anywhere; }
.number { text-align: right; white-space: nowrap; }
`;

/** The hash below counts each byte between the tags. */
export const styleElement: Html = { markup: `<style>${css}</style>` };

const styleHash = hash('sha256', css, 'base64');

/** No script, no request to anywhere, no frame; `data:` is for the empty icon of the tab. */
export const contentSecurityPolicy: string = `default-src 'none'; style-src 'sha256-${styleHash}'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
