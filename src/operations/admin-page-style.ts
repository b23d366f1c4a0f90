// The look of the page for people, light and dark, and the policy that lets a browser apply it and nothing else.
import { createHash } from 'node:crypto';
import { type Html, html } from './admin-page-html.ts';

const css = `
:root {
  color-scheme: light dark;
  --page: #f5f6f8; --card: #fff; --line: #dde2e8; --text: #1b2430; --muted: #55606e; --link: #0b5cad;
  --allow: #1f7a57; --deny: #54739c; --trouble: #b3470e;
  --good-pill: #e2f3ea; --good-text: #14593f; --bad-pill: #fdebdf; --bad-text: #8a3406;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #12161b; --card: #1a2027; --line: #2e3741; --text: #e3e8ed; --muted: #a2adb9; --link: #7db7f5;
    --allow: #46b587; --deny: #7d9fca; --trouble: #ee8f56;
    --good-pill: #143527; --good-text: #7fdcb0; --bad-pill: #43240f; --bad-text: #ffb68a;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 94%/1.5 system-ui, sans-serif; }
header, main, footer { max-width: 66rem; margin: 0 auto; padding: 0 1rem; }
header { padding-top: 1.5rem; }
h1 { display: inline-block; margin: 0 .75rem 0 0; font-size: 1.5rem; line-height: 1.3; letter-spacing: -.01em; }
h2 { margin: 0 0 .75rem; font-size: 1.05rem; line-height: 1.3; }
h3 { margin: 0 0 .5rem; font-size: .95rem; line-height: 1.4; overflow-wrap: anywhere; }
p, ul, dl, dd { margin: 0; }
a { color: var(--link); text-underline-offset: .15em; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; border-radius: 2px; }
code { font: .9em/1.4 ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; overflow-wrap: anywhere; }
.facts { margin-top: .35rem; color: var(--muted); }
.facts span { margin-right: 1rem; display: inline-block; }
.pill { display: inline-block; padding: .1rem .65rem; border-radius: 1rem; font-size: .85rem; font-weight: 600; white-space: nowrap; }
.good { background: var(--good-pill); color: var(--good-text); }
.bad { background: var(--bad-pill); color: var(--bad-text); }
h1 + .pill { vertical-align: .2rem; }
main { display: grid; grid-template-columns: 1fr; gap: 1rem; padding-top: 1.25rem; padding-bottom: 1rem; }
.column { display: flex; flex-direction: column; gap: 1rem; min-width: 0; }
section { min-width: 0; padding: 1rem 1.15rem 1.15rem; background: var(--card); border: 1px solid var(--line); border-radius: .6rem; }
.attention { border-left: .3rem solid var(--trouble); }
.attention.quiet { padding-bottom: 1rem; border-left-color: var(--allow); }
.attention.quiet h2 { margin: 0; font-weight: 500; }
.attention ul { padding-left: 1.1rem; overflow-wrap: anywhere; }
.attention li + li { margin-top: .35rem; }
.issuers { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); gap: 1rem; }
.issuer + .issuer { padding-top: 1rem; border-top: 1px solid var(--line); }
.pair { display: flex; gap: .75rem; padding: .2rem 0; }
.pair dt { flex: 0 0 7.2rem; color: var(--muted); }
.pair dd { min-width: 0; overflow-wrap: anywhere; }
.kids { display: flex; flex-wrap: wrap; gap: .3rem; padding: 0; list-style: none; }
.kids code { display: inline-block; padding: 0 .4rem; border: 1px solid var(--line); border-radius: .3rem; }
.muted { color: var(--muted); }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th code { overflow-wrap: normal; }
time { display: inline-block; }
th, td { padding: .3rem .5rem .3rem 0; border-bottom: 1px solid var(--line); text-align: left; font-weight: 400; }
thead th { color: var(--muted); font-size: .85rem; }
tbody tr:last-child > * { border-bottom-color: transparent; }
tfoot th, tfoot td { border-top: 1px solid var(--line); border-bottom: 0; font-weight: 600; }
.number { padding-right: .9rem; text-align: right; white-space: nowrap; }
.share { width: 26%; padding-right: 0; }
.share svg { display: block; width: 100%; height: .55rem; }
.never > * { color: var(--muted); }
.allow { fill: var(--allow); }
.deny { fill: var(--deny); }
.unavailable { fill: var(--trouble); }
.track { fill: var(--line); }
.chart { display: block; width: 100%; height: 13rem; margin: .75rem 0 .35rem; overflow: visible; }
.chart .bar { fill: var(--deny); }
.chart line { stroke: var(--line); }
.chart text { fill: var(--muted); font-size: 11px; text-anchor: middle; font-variant-numeric: tabular-nums; }
.chart .count { fill: var(--text); }
details { margin-top: .6rem; }
summary { cursor: pointer; color: var(--link); }
footer { padding-bottom: 2rem; color: var(--muted); }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; padding: 0; list-style: none; }
@media (min-width: 56rem) {
  main { grid-template-columns: 1fr 1fr; }
  .wide { grid-column: 1 / -1; }
  .issuer + .issuer { padding-top: 0; border-top: 0; }
}
@media (max-width: 30rem) {
  body { font-size: 88%; }
  section { padding: .85rem .9rem .95rem; }
  .pair dt { flex-basis: 6.2rem; }
  .chart text { font-size: 9.5px; }
  .chart .count { display: none; }
  .share { display: none; }
}
@media (forced-colors: active) {
  .pill { border: 1px solid; }
  .allow, .deny, .unavailable, .chart .bar { fill: CanvasText; }
}
@media print {
  section { break-inside: avoid; }
}
`;

/** With its element: the hash below counts each byte between the tags. */
export const styleElement: Html = html`<style>${{ kind: 'html', markup: css }}</style>`;

const styleHash = createHash('sha256').update(css).digest('base64');

/** No script at all, no request to anywhere, in nobody's frame; `data:` is for the icon of the tab. */
export const contentSecurityPolicy: string = [
  "default-src 'none'",
  `style-src 'sha256-${styleHash}'`,
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');
